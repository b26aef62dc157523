// Package left tells which goroutines are left, for errors of what has not ended in time. It
// finds them in the text of the goroutine profile, and judges nothing.
package left

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
)

// How much a report of goroutines tells: a page of kinds, and some of their stacks.
const (
	leftKinds  = 40
	leftStacks = 16 << 10
)

// Labelled returns the entries of the goroutine profile that have a label.
func Labelled(label, value string) []string {
	pair := fmt.Sprintf("%q:%q", label, value)
	return entries(func(entry string) bool {
		_, labels, _ := strings.Cut(entry, "# labels: ")
		labels, _, _ = strings.Cut(labels, "\n")
		return strings.Contains(labels, pair)
	})
}

// Await waits until done is closed. If ctx ends first, the error says what has not ended, why the
// caller waits no longer, and the goroutines in functions whose names begin so, with their stacks.
// A store has no label of its own, so others of its kind are named too.
func Await(ctx context.Context, done <-chan struct{}, what string, functions ...string) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	err := fmt.Errorf("%s: %w", what, context.Cause(ctx))
	found := entries(func(entry string) bool {
		return slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(entry, "\t"+f) })
	})
	if count, report := Describe(found); count > 0 {
		return fmt.Errorf("%w; what is left (%d goroutines):\n%s", err, count, report)
	}
	return err
}

// entries returns the entries of the goroutine profile that are wanted, without those of
// goroutines that are just ending.
func entries(want func(entry string) bool) []string {
	var found []string
	_, all, _ := strings.Cut(goroutines(1), "\n") // after the total
	for entry := range strings.SplitSeq(all, "\n\n") {
		if want(entry) && !ending(entry) {
			found = append(found, entry)
		}
	}
	return found
}

// goroutines is the profile, with 1 for those that are alike together, with 2 for the stack of each.
func goroutines(debug int) string {
	var text strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&text, debug) // such a writer never fails
	return text.String()
}

// ending says whether only the runtime has yet to end the goroutines of an entry.
func ending(entry string) bool {
	frames, ends := strings.Count(entry, "\n#\t0x"), strings.Count(entry, "\truntime.goexit")
	return frames > 0 && frames == ends
}

// left is some goroutines that are alike.
type left struct {
	count   int
	text    string // what there is to say about them
	profile string // their entry in the goroutine profile
}

// Describe names the goroutines of entries of the goroutine profile: how many there are,
// where they are, what they run and who created it, a line for those that are alike. What
// hangs is seldom many, so the rarest come first. Stacks follow, as far as there is room.
func Describe(entries []string) (count int, report string) {
	origins := originsOf(goroutines(2))
	byText := map[string]*left{}
	for _, entry := range entries {
		l := leftOf(entry, origins)
		count += l.count
		if alike := byText[l.text]; alike != nil {
			alike.count += l.count
		} else {
			byText[l.text] = &l
		}
	}
	kinds := slices.SortedFunc(maps.Values(byText), func(a, b *left) int { return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(a.text, b.text)) })
	return count, reportOf(kinds)
}

func reportOf(kinds []*left) string {
	var text, stacks strings.Builder
	more := 0
	for i, l := range kinds {
		if i < leftKinds {
			fmt.Fprintf(&text, "%6d %s\n", l.count, l.text)
		} else {
			more += l.count
		}
		if stacks.Len()+len(l.profile) < leftStacks {
			stacks.WriteString("\n" + l.profile + "\n")
		}
	}
	if more > 0 {
		fmt.Fprintf(&text, "%6d of %d more kinds\n", more, len(kinds)-leftKinds)
	}
	return text.String() + stacks.String()
}

// leftOf reads an entry of the profile: the number, addresses and labels, and a line for
// each function, the innermost first.
func leftOf(entry string, origins map[string]origin) left {
	entry = strings.TrimSpace(entry)
	number, _, _ := strings.Cut(entry, " ")
	count, _ := strconv.Atoi(number)
	var functions, places []string
	for line := range strings.Lines(entry) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != "#" || !strings.HasPrefix(fields[1], "0x") || strings.HasPrefix(fields[2], "runtime.") {
			continue
		}
		function, _, _ := strings.Cut(fields[2], "+0x")
		functions, places = append(functions, function), append(places, fields[3])
	}
	if len(functions) == 0 {
		return left{count, "about to begin, or to end", entry}
	}
	at := max(0, slices.IndexFunc(functions, func(f string) bool { return !waitsIn(f) }))
	text := fmt.Sprintf("in %s (%s)", path.Base(functions[at]), path.Base(places[at]))
	from := origins[key(places)]
	if from.state != "" {
		text += " [" + from.state + "]"
	}
	text += ", of " + path.Base(functions[outermost(functions)])
	if from.creator != "" {
		text += ", created by " + path.Base(from.creator)
	}
	return left{count, text, entry}
}

// outermost is where the function is that a goroutine runs, but for what only calls it.
func outermost(functions []string) int {
	last := len(functions) - 1
	for i := last; i >= 0; i-- {
		if !waitsIn(functions[i]) {
			return i
		}
	}
	return last
}

// waitsIn reports whether a function is of a package that others wait in.
func waitsIn(function string) bool {
	return slices.ContainsFunc([]string{"sync.", "time.", "internal/", "syscall.", "io."}, func(pkg string) bool { return strings.HasPrefix(function, pkg) })
}

// origin is what the profile does not tell of a goroutine.
type origin struct{ state, creator string }

// key tells goroutines apart by where all their functions are.
func key(places []string) string { return strings.Join(places, "\n") }

// originsOf reads the stacks of all goroutines of the process.
func originsOf(dump string) map[string]origin {
	origins := map[string]origin{}
	for block := range strings.SplitSeq(dump, "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		_, state, _ := strings.Cut(lines[0], "[")
		state, _, _ = strings.Cut(state, "]")
		state, _, _ = strings.Cut(state, ",")
		from := origin{state: strings.TrimSuffix(state, " (durable)")}
		var places []string
		for i := 1; i+1 < len(lines); i += 2 {
			if creator, ok := strings.CutPrefix(lines[i], "created by "); ok {
				from.creator, _, _ = strings.Cut(creator, " in goroutine ")
				break
			}
			if !strings.HasPrefix(lines[i], "runtime.") {
				place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
				places = append(places, place)
			}
		}
		origins[key(places)] = from
	}
	return origins
}
