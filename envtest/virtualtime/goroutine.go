package virtualtime

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// durable is how the runtime marks the state of a goroutine of a bubble that only
// its bubble can wake.
const durable = "(durable)"

// Goroutine is one as the runtime tells of it.
type Goroutine struct {
	State string // such as "sync.Mutex.Lock"
	Func  string // the function that waits, outside the packages by which one waits
	Line  string // where it is there, as FILE:LINE
	id    string
	// bubble is which one it is in, "" if in none.
	bubble string
}

// String names the goroutine, its state and its line.
func (g Goroutine) String() string {
	return fmt.Sprintf("goroutine %s is in %s at %s (%s)", g.id, g.State, g.Func, g.Line)
}

// runs reports whether the goroutine runs, or would if there were more CPUs.
func (g Goroutine) runs() bool {
	return slices.Contains([]string{"running", "runnable", "preempted", "copystack"}, g.State) || strings.HasPrefix(g.State, "GC ")
}

// self is the goroutine that calls it, without its place.
func self() Goroutine {
	stack := make([]byte, 128)
	g, _ := parseHeader(string(stack[:runtime.Stack(stack, false)]))
	return g
}

// goroutines returns all goroutines of the process at one moment.
func (w *watchman) goroutines() []Goroutine {
	n := runtime.Stack(w.stacks, true)
	for ; n == len(w.stacks); n = runtime.Stack(w.stacks, true) {
		w.stacks = make([]byte, 2*len(w.stacks))
	}
	var all []Goroutine
	for block := range strings.SplitSeq(string(w.stacks[:n]), "\n\n") {
		g, ok := parseHeader(block)
		if !ok {
			continue
		}
		if !strings.HasSuffix(g.State, durable) {
			g.locate(block)
		}
		all = append(all, g)
	}
	return all
}

// parseHeader reads "goroutine 7 [select (durable), 2 minutes, synctest bubble 1]:".
func parseHeader(block string) (Goroutine, bool) {
	header, _, _ := strings.Cut(block, "\n")
	name, rest, ok := strings.Cut(header, " [")
	id, isGoroutine := strings.CutPrefix(name, "goroutine ")
	states, _, closed := strings.Cut(rest, "]")
	if !ok || !isGoroutine || !closed {
		return Goroutine{}, false
	}
	id, _, _ = strings.Cut(id, " ")
	words := strings.Split(states, ", ")
	g := Goroutine{State: words[0], id: id}
	for _, word := range words[1:] {
		if bubble, ok := strings.CutPrefix(word, "synctest bubble "); ok {
			g.bubble = bubble
		}
	}
	return g, true
}

// locate finds the first frame outside the packages by which goroutines wait, or
// else the first one. Each frame has two lines.
func (g *Goroutine) locate(block string) {
	lines := strings.Split(block, "\n")[1:]
	for i := 0; i+1 < len(lines) && !strings.HasPrefix(lines[i], "created by "); i += 2 {
		function := lines[i]
		if end := strings.LastIndex(function, "("); end > 0 {
			function = function[:end]
		}
		own := !waits(function)
		if own || g.Func == "" {
			g.Func = function
			g.Line, _, _ = strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		}
		if own {
			return
		}
	}
}

// waits reports whether a function is of a package of the standard library by
// which goroutines wait.
func waits(function string) bool {
	for _, pkg := range []string{"runtime.", "sync.", "sync/", "internal/", "syscall.", "os.", "io.", "net.", "bufio.", "crypto/"} {
		if strings.HasPrefix(function, pkg) {
			return true
		}
	}
	return false
}
