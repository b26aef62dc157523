package trace

import (
	"fmt"
	"slices"
	"strings"
)

// stepsAround is how many steps a Divergence shows on each side.
const stepsAround = 3

// Step is a line of a canonical trace.
type Step struct {
	Line   int    // its number, from 1
	At     string // the virtual time since the start, such as "+1.005s"
	Lane   string // such as "client admin"; see WriteCanonical
	Text   string // what happened there
	Record int    // its index in the records that DivergenceOfRecords was given; -1 from DivergenceOf
}

// Divergence is what happens around the place where two canonical traces diverge.
type Divergence struct {
	Line int // the first line that differs, from 1; 0 if none does
	// Common are the last steps that both have, and the last of each lane that differs,
	// oldest first.
	Common []Step
	// NextA and NextB are the first steps that only one of them has there, and what
	// follows them. Each is empty if its trace ends there.
	NextA, NextB []Step
	// Later says whether the other trace has the same later on, at whatever time: AInB is
	// the first step of NextA as b has it, BInA that of NextB as a has it. A zero Step
	// means that it never comes.
	Later struct{ AInB, BInA Step }
	// BesidesTime is the first line that differs in more than its time; 0 if none does.
	BesidesTime int
}

// DivergenceOf compares two canonical traces in the form that WriteCanonical writes.
func DivergenceOf(a, b string) Divergence { return diverge(steps(a), steps(b)) }

// DivergenceOfRecords compares two runs by their canonical traces. The steps it returns also
// say which record they are.
func DivergenceOfRecords(a, b []Record) Divergence {
	return diverge(stepsOfRecords(a), stepsOfRecords(b))
}

// Same reports whether there is no difference.
func (d Divergence) Same() bool { return d.Line == 0 }

func steps(text string) []Step {
	var all []Step
	for l := range strings.Lines(text) {
		at, rest, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
		lane, what, _ := strings.Cut(rest, "\t")
		all = append(all, Step{Line: len(all) + 1, At: at, Lane: lane, Text: what, Record: -1})
	}
	return all
}

func stepsOfRecords(recs []Record) []Step {
	var all []Step
	for i, l := range canonicalLines(recs) {
		all = append(all, Step{Line: i + 1, At: elapsed(l.at), Lane: l.lane, Text: l.text, Record: l.record})
	}
	return all
}

// sameBesidesTime reports whether the same happens in both steps, at whatever time.
func (s Step) sameBesidesTime(other Step) bool { return s.Lane == other.Lane && s.Text == other.Text }

func (s Step) same(other Step) bool { return s.At == other.At && s.sameBesidesTime(other) }

func diverge(a, b []Step) Divergence {
	at := firstUnlike(a, b, Step.same)
	if at < 0 {
		return Divergence{}
	}
	d := Divergence{Line: at + 1, NextA: following(a, at), NextB: following(b, at), BesidesTime: firstUnlike(a, b, Step.sameBesidesTime) + 1}
	d.Common = before(a[:at], slices.Concat(d.NextA[:min(1, len(d.NextA))], d.NextB[:min(1, len(d.NextB))]))
	d.Later.AInB, d.Later.BInA = whereElse(d.NextA, b[at:]), whereElse(d.NextB, a[at:])
	return d
}

// firstUnlike is the index of the first step that is not alike, or -1.
func firstUnlike(a, b []Step, alike func(Step, Step) bool) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || !alike(a[i], b[i]) {
			return i
		}
	}
	return -1
}

// before returns the last of some steps, and the last in the lane of each of next.
func before(all, next []Step) []Step {
	from := max(0, len(all)-stepsAround)
	last := all[from:]
	for i := from - 1; i >= 0 && len(next) > 0; i-- {
		inLane := func(s Step) bool { return s.Lane == all[i].Lane }
		if slices.ContainsFunc(next, inLane) && !slices.ContainsFunc(last, inLane) {
			last = slices.Insert(slices.Clone(last), 0, all[i])
		}
	}
	return last
}

func following(all []Step, from int) []Step { return all[from:min(len(all), from+stepsAround)] }

// whereElse finds the first of some steps among others, at whatever time.
func whereElse(next, others []Step) Step {
	for _, s := range others {
		if len(next) > 0 && s.sameBesidesTime(next[0]) {
			return s
		}
	}
	return Step{}
}

// Words describes the divergence in several lines: what both runs did last, what each
// did next, when, and in which lane. a and b are the names of the runs.
func (d Divergence) Words(a, b string) string {
	if d.Same() {
		return fmt.Sprintf("%s and %s are the same\n", a, b)
	}
	var text strings.Builder
	if len(d.Common) == 0 {
		fmt.Fprintf(&text, "%s and %s differ from the beginning.\n", a, b)
	} else {
		last := d.Common[len(d.Common)-1]
		fmt.Fprintf(&text, "%s and %s do the same up to line %d, at %s:\n%s", a, b, last.Line, last.At, table(d.Common))
	}
	fmt.Fprintf(&text, "then %s\n%s%s", opening(a, d.NextA), table(d.NextA), elsewhere(b, d.NextA, d.Later.AInB))
	fmt.Fprintf(&text, "but %s\n%s%s", opening(b, d.NextB), table(d.NextB), elsewhere(a, d.NextB, d.Later.BInA))
	fmt.Fprintf(&text, "so %s\n", d.conclusion(a, b))
	return text.String()
}

// conclusion says in words how the runs differ where they diverge.
func (d Divergence) conclusion(a, b string) string {
	switch {
	case len(d.NextA) == 0:
		return fmt.Sprintf("%s ends here, and %s goes on", a, b)
	case len(d.NextB) == 0:
		return fmt.Sprintf("%s ends here, and %s goes on", b, a)
	}
	nextA, nextB := d.NextA[0], d.NextB[0]
	switch inA, inB := d.Later.BInA.Line > 0, d.Later.AInB.Line > 0; {
	case nextA.sameBesidesTime(nextB):
		return fmt.Sprintf("the same happens at another time: %s in %s, %s in %s; %s", nextA.At, a, nextB.At, b, d.besidesTime())
	case inA && inB:
		return "each does later what the other does here: the order differs"
	case inB:
		return fmt.Sprintf("%s does something else first", b)
	case inA:
		return fmt.Sprintf("%s does something else first", a)
	case nextA.Lane == nextB.Lane:
		return fmt.Sprintf("%q sees something else", nextA.Lane)
	}
	return "neither ever does what the other does here"
}

func (d Divergence) besidesTime() string {
	if d.BesidesTime == 0 {
		return "nothing but times differs in what follows"
	}
	return fmt.Sprintf("line %d is the first that differs in more than its time", d.BesidesTime)
}

func opening(name string, next []Step) string {
	if len(next) == 0 {
		return name + " ends"
	}
	return fmt.Sprintf("%s goes on at %s:", name, next[0].At)
}

// elsewhere says where another run has the first of some steps.
func elsewhere(other string, next []Step, found Step) string {
	switch {
	case len(next) == 0:
		return ""
	case found.Line == 0:
		return fmt.Sprintf("  (%s never has the first of these from there on)\n", other)
	}
	return fmt.Sprintf("  (%s has the first of these at %s, in line %d)\n", other, found.At, found.Line)
}

// table lists steps, a line each, in columns: time, lane and what happened.
func table(all []Step) string {
	var at, lane int
	for _, s := range all {
		at, lane = max(at, len(s.At)), max(lane, min(len(s.Lane), maxSubjectColumns))
	}
	var text strings.Builder
	for _, s := range all {
		fmt.Fprintf(&text, "  %*s  %-*s  %s\n", at, s.At, lane, s.Lane, s.words())
	}
	return text.String()
}

// words is what happens to the thing that the lane is about.
func (s Step) words() string {
	what, detail, _ := strings.Cut(s.Text, ": ")
	if detail != "" {
		detail = ": " + detail
	}
	switch s.kind() {
	case "client":
		if request, answer, ok := strings.Cut(s.Text, " -> "); ok {
			return fmt.Sprintf("is answered %s to %s", answer, request)
		}
	case "watch":
		if what == "end" {
			return "ends" + detail
		}
		return "receives " + s.Text
	case "hook":
		if what == string(End) && detail != "" {
			return "fails" + detail
		}
		return map[string]string{string(Start): "starts", string(End): "ends", string(Held): "is held", string(Released): "is released"}[what] + detail
	case "signal":
		return "fires"
	case "check":
		return map[string]string{"ok": "turns ok", "failing": "is failing"}[what]
	case "store":
		verb, version, _ := strings.Cut(s.Text, " @")
		return fmt.Sprintf("is %sd, as its change %s", verb, version)
	}
	return s.Text
}

// kind is the word of a lane that says what it is about. The names of a control plane
// and of a server may stand before it.
func (s Step) kind() string {
	words := strings.Fields(s.Lane)
	for _, w := range words[:min(len(words), 3)] {
		switch w {
		case "client", "watch", "hook", "signal", "check", "store", "note":
			return w
		}
	}
	return ""
}
