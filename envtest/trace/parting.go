package trace

import (
	"fmt"
	"strings"
)

// stepsAround is how many steps a Parting shows on each side.
const stepsAround = 3

// Step is a line of a canonical trace.
type Step struct {
	Line   int    // its number, from 1
	At     string // the virtual time since the start, such as "+1.005s"
	Lane   string // such as "client admin"; see WriteCanonical
	Text   string // what happened there
	Record int    // its index in the records that PartRecords was given; -1 from Part
}

// Parting is what happens around the place where two canonical traces part.
type Parting struct {
	Difference
	Common []Step // the last steps that both have, oldest first
	// NextA and NextB are the first steps that only one of them has there, and what
	// follows them. Each is empty if its trace ends there.
	NextA, NextB []Step
	// Later says where the other trace has the first steps of NextA and NextB from there
	// on, at whatever time. Its steps are zero if there is no such place.
	Later struct{ AInB, BInA Step }
	// BesidesTime is the first line that differs in more than its time; 0 if none does.
	BesidesTime int
}

// Part compares two canonical traces in the form that WriteCanonical writes.
func Part(a, b string) Parting { return part(Diff(a, b), steps(a), steps(b)) }

// PartRecords compares two runs by their canonical traces. The steps it returns also
// say which record they are.
func PartRecords(a, b []Record) Parting {
	textA, stepsA := canonicalSteps(a)
	textB, stepsB := canonicalSteps(b)
	return part(Diff(textA, textB), stepsA, stepsB)
}

func steps(text string) []Step {
	var all []Step
	for i, l := range split(text) {
		if at, lane, what := fields(l); l != "" {
			all = append(all, Step{Line: i + 1, At: at, Lane: lane, Text: what, Record: -1})
		}
	}
	return all
}

func canonicalSteps(recs []Record) (string, []Step) {
	var text strings.Builder
	var all []Step
	for i, l := range canonicalLines(recs) {
		text.WriteString(l.String() + "\n")
		all = append(all, Step{Line: i + 1, At: elapsed(l.at), Lane: l.lane, Text: l.text, Record: l.record})
	}
	return text.String(), all
}

func part(d Difference, a, b []Step) Parting {
	p := Parting{Difference: d}
	if d.Same() {
		return p
	}
	at := min(d.Line-1, len(a), len(b))
	p.Common = a[max(0, at-stepsAround):at]
	p.NextA, p.NextB = following(a, at), following(b, at)
	p.Later.AInB, p.Later.BInA = whereElse(p.NextA, b[at:]), whereElse(p.NextB, a[at:])
	p.BesidesTime = unlike(a, b)
	return p
}

func following(all []Step, from int) []Step { return all[from:min(len(all), from+stepsAround)] }

// whereElse finds the first of some steps among others, at whatever time.
func whereElse(next, others []Step) Step {
	for _, s := range others {
		if len(next) > 0 && s.Lane == next[0].Lane && s.Text == next[0].Text {
			return s
		}
	}
	return Step{}
}

// unlike is the number of the first line that differs in more than its time, or 0.
func unlike(a, b []Step) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i].Lane != b[i].Lane || a[i].Text != b[i].Text {
			return i + 1
		}
	}
	return 0
}

// Words tells it in several lines of plain words: what both runs did last, what each
// did next, when, and in which lane. a and b are what the runs are called.
func (p Parting) Words(a, b string) string {
	if p.Same() {
		return fmt.Sprintf("%s and %s are the same\n", a, b)
	}
	var text strings.Builder
	if len(p.Common) == 0 {
		fmt.Fprintf(&text, "%s and %s differ from the beginning.\n", a, b)
	} else {
		last := p.Common[len(p.Common)-1]
		fmt.Fprintf(&text, "%s and %s do the same up to line %d, at %s:\n%s", a, b, last.Line, last.At, told(p.Common))
	}
	fmt.Fprintf(&text, "then %s\n%s%s", opening(a, p.NextA), told(p.NextA), elsewhere(b, p.NextA, p.Later.AInB))
	fmt.Fprintf(&text, "but %s\n%s%s", opening(b, p.NextB), told(p.NextB), elsewhere(a, p.NextB, p.Later.BInA))
	fmt.Fprintf(&text, "so %s\n", p.conclusion(a, b))
	return text.String()
}

// conclusion says in words how the runs differ where they part.
func (p Parting) conclusion(a, b string) string {
	switch {
	case len(p.NextA) == 0:
		return fmt.Sprintf("%s ends here, and %s goes on", a, b)
	case len(p.NextB) == 0:
		return fmt.Sprintf("%s ends here, and %s goes on", b, a)
	}
	nextA, nextB := p.NextA[0], p.NextB[0]
	switch inA, inB := p.Later.BInA.Line > 0, p.Later.AInB.Line > 0; {
	case nextA.Lane == nextB.Lane && nextA.Text == nextB.Text:
		return fmt.Sprintf("the same happens at another time: %s in %s, %s in %s; %s", nextA.At, a, nextB.At, b, p.besidesTime())
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

func (p Parting) besidesTime() string {
	if p.BesidesTime == 0 {
		return "nothing but times differs in what follows"
	}
	return fmt.Sprintf("line %d is the first that differs in more than its time", p.BesidesTime)
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

func told(all []Step) string {
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
