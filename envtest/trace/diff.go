package trace

import (
	"fmt"
	"strings"
)

// Difference is where two canonical traces begin to differ; zero if they do not.
type Difference struct {
	Line int    // the first line that differs, from 1
	A, B string // that line in each trace; empty after its end
	// Before holds the last lines in common: of each lane that differs, and of all.
	Before []string
	// AInB is the number of A's line in b, and BInA of B's in a; 0 if it is not there.
	AInB, BInA int
}

// Diff compares two canonical traces in the form that WriteCanonical writes.
func Diff(a, b string) Difference {
	as, bs := split(a), split(b)
	for i := range max(len(as), len(bs)) {
		x, y := lineAt(as, i), lineAt(bs, i)
		if x == y {
			continue
		}
		return Difference{
			Line: i + 1, A: x, B: y, Before: before(as[:min(i, len(as))], x, y),
			AInB: find(bs, i, x), BInA: find(as, i, y),
		}
	}
	return Difference{}
}

// Same reports whether there is no difference.
func (d Difference) Same() bool { return d.Line == 0 }

// String explains the difference, in several lines.
func (d Difference) String() string {
	if d.Same() {
		return "the traces are the same"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "the traces differ from line %d on\n", d.Line)
	for _, l := range d.Before {
		fmt.Fprintf(&text, "  both  %s\n", spaced(l))
	}
	fmt.Fprintf(&text, "  a     %s\n  b     %s\n%s", orEnd(d.A), orEnd(d.B), d.meaning())
	return text.String()
}

// meaning says in words how the two lines differ.
func (d Difference) meaning() string {
	atA, laneA, textA := fields(d.A)
	atB, laneB, textB := fields(d.B)
	switch {
	case d.A == "":
		return "a ends here; b goes on"
	case d.B == "":
		return "b ends here; a goes on"
	case laneA == laneB && textA == textB:
		return fmt.Sprintf("the same happens at another time: %s in a, %s in b", atA, atB)
	case laneA == laneB:
		return fmt.Sprintf("%s sees something else", laneA)
	case d.AInB > 0 && d.BInA > 0:
		return fmt.Sprintf("the order differs: b has a's line as line %d, a has b's as line %d", d.AInB, d.BInA)
	case d.AInB > 0:
		return fmt.Sprintf("b has more: a's line is line %d there", d.AInB)
	case d.BInA > 0:
		return fmt.Sprintf("a has more: b's line is line %d there", d.BInA)
	}
	return "neither line is found in the other trace"
}

// split returns the lines of a canonical text.
func split(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// find returns the number of the first line from an index on with that text, or 0.
func find(lines []string, from int, text string) int {
	for i := from; i < len(lines) && text != ""; i++ {
		if lines[i] == text {
			return i + 1
		}
	}
	return 0
}

// before returns the last common line, and the last one in each lane that differs.
func before(common []string, a, b string) []string {
	_, laneA, _ := fields(a)
	_, laneB, _ := fields(b)
	var lines []string
	for _, lane := range []string{laneA, laneB} {
		for i := len(common) - 1; i >= 0; i-- {
			if _, l, _ := fields(common[i]); l == lane {
				if len(lines) == 0 || lines[0] != common[i] {
					lines = append(lines, common[i])
				}
				break
			}
		}
	}
	if n := len(common); n > 0 && common[n-1] != "" && !strings.Contains(strings.Join(lines, "\n"), common[n-1]) {
		lines = append(lines, common[n-1])
	}
	return lines
}

// fields are the columns of a line.
func fields(l string) (at, lane, text string) {
	at, rest, _ := strings.Cut(l, "\t")
	lane, text, _ = strings.Cut(rest, "\t")
	return at, lane, text
}

func spaced(l string) string { return strings.ReplaceAll(l, "\t", "  ") }

func orEnd(l string) string {
	if l == "" {
		return "(the end)"
	}
	return spaced(l)
}
