package virtualtime

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// durable is the runtime's mark of a goroutine that only its own bubble can wake.
const durable = "(durable)"

// Goroutine describes one goroutine, from the runtime's stack dump.
type Goroutine struct {
	State  string // for example "sync.Mutex.Lock"
	Func   string // the innermost function outside the packages goroutines block in
	Line   string // where in Func, as FILE:LINE
	id     string
	bubble string // the number of its bubble, "" outside one
	pauses bool   // it is in Paused
}

// String names the goroutine, its state and its line.
func (g Goroutine) String() string {
	return fmt.Sprintf("goroutine %s is in %s at %s (%s)", g.id, g.State, g.Func, g.Line)
}

// runs reports whether the goroutine runs, or would if there were more CPUs. Collecting
// garbage also takes CPU time, even if the goroutine waits for it.
func (g Goroutine) runs() bool {
	return slices.Contains(runningStates, g.State) || strings.HasPrefix(g.State, "GC ")
}

var runningStates = []string{
	"running", "runnable", "preempted", "copystack",
	"wait for GC cycle", "garbage collection", "garbage collection scan", "stopping the world",
}

// self describes the calling goroutine, without Func and Line.
func self() Goroutine {
	stack := make([]byte, 128)
	g, _ := parseHeader(string(stack[:runtime.Stack(stack, false)]))
	return g
}

// dump is the stacks of all goroutines of the process at one moment, separated by
// empty lines.
func (m *monitor) dump() string {
	n := runtime.Stack(m.stacks, true)
	for ; n == len(m.stacks); n = runtime.Stack(m.stacks, true) {
		m.stacks = make([]byte, 2*len(m.stacks))
	}
	return string(m.stacks[:n])
}

// stacks are those of the goroutines of a bubble.
func stacks(bubble string) string {
	m := &monitor{stacks: make([]byte, 1<<16)}
	var blocks []string
	for block := range strings.SplitSeq(m.dump(), "\n\n") {
		if g, ok := parseHeader(block); ok && g.bubble == bubble {
			blocks = append(blocks, block)
		}
	}
	return strings.Join(blocks, "\n\n")
}

// goroutines describes all goroutines of the process at one moment.
func (m *monitor) goroutines() []Goroutine {
	var all []Goroutine
	for block := range strings.SplitSeq(m.dump(), "\n\n") {
		g, ok := parseHeader(block)
		if !ok {
			continue
		}
		if !strings.HasSuffix(g.State, durable) {
			g.locate(block)
			g.pauses = strings.Contains(block, pausedFrame)
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

// locate sets Func and Line from the innermost frame outside the packages
// goroutines block in, or else of all. A frame takes two lines.
func (g *Goroutine) locate(block string) {
	lines := strings.Split(block, "\n")[1:]
	for i := 0; i+1 < len(lines) && !strings.HasPrefix(lines[i], "created by "); i += 2 {
		function := lines[i]
		if end := strings.LastIndex(function, "("); end > 0 {
			function = function[:end]
		}
		own := !blocksIn(function)
		if own || g.Func == "" {
			g.Func = function
			g.Line, _, _ = strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		}
		if own {
			return
		}
	}
}

// blocksIn reports whether a function is of a package that goroutines block in.
func blocksIn(function string) bool {
	packages := []string{"runtime.", "sync.", "sync/", "internal/", "syscall.", "os.", "io.", "net.", "bufio.", "crypto/"}
	return slices.ContainsFunc(packages, func(pkg string) bool { return strings.HasPrefix(function, pkg) })
}
