package checkers

import (
	"context"
	"fmt"
	"strings"
)

// Verdict is what a check says about a history.
type Verdict int

// The verdicts. Unknown is not a pass: the check has given up, or had nothing to judge.
const (
	Unknown Verdict = iota
	Holds
	Broken
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	return [...]string{Unknown: "unknown", Holds: "holds", Broken: "broken"}[v]
}

// Checker judges a history. It is a pure function: the same history gets the same
// result on any machine.
type Checker interface {
	// Name returns a short name in lower case, such as "linearizability".
	Name() string
	// Check judges the history without changing it. If ctx ends first, whatever has not
	// been judged is Unknown.
	Check(ctx context.Context, h *History) Result
}

// All returns every check of this package, with its defaults.
func All() []Checker {
	return []Checker{Linearizability{}, WatchGuarantees{}, ListWatch{}, MonotonicReads{}, NoResurrection{}, FinalizersOwned{}}
}

// Check judges a history with checkers, or with all of them if none is given.
func Check(ctx context.Context, h *History, checkers ...Checker) Report {
	if len(checkers) == 0 {
		checkers = All()
	}
	var report Report
	for _, c := range checkers {
		report.Results = append(report.Results, c.Check(ctx, h))
	}
	return report
}

// Report is what the checks say about a history.
type Report struct{ Results []Result }

// Result is what one check says about a history.
type Result struct {
	Check string // the checker's name
	// Judged is how much there was to judge, in the check's own unit; 0 means nothing.
	Judged   int
	Unit     string    // such as "watches"
	Findings []Finding // what is broken, and what is not known
	// More is how many findings there are beyond those in Findings.
	More int
}

// maxFindings is how many findings a result keeps. One fault often has many.
const maxFindings = 50

// Finding is something that a check found, or could not decide.
type Finding struct {
	Check    string
	Verdict  Verdict // Broken or Unknown
	What     string  // in a sentence, what is wrong
	Evidence []Evidence
}

// Evidence is one thing that the history says: an operation, a write, or a watch or
// one of its events. The others are nil.
type Evidence struct {
	Operation *Operation
	Watch     *Watch // the watch itself, or that of Event
	Event     *Event
	Write     *Write
}

// Verdict is Broken if any check is, Unknown if any check has given up or if there was
// nothing to judge for any of them, and otherwise Holds.
func (r Report) Verdict() Verdict {
	worst, judged := Holds, 0
	for _, result := range r.Results {
		judged += result.Judged
		switch v := result.Verdict(); {
		case v == Broken:
			return Broken
		case v == Unknown && result.Judged > 0:
			worst = Unknown
		}
	}
	if judged == 0 {
		return Unknown
	}
	return worst
}

// Findings returns the findings of all checks.
func (r Report) Findings() []Finding {
	var all []Finding
	for _, result := range r.Results {
		all = append(all, result.Findings...)
	}
	return all
}

// Verdict is Broken or Unknown if a finding is, in that order, and Unknown if there
// was nothing to judge.
func (r Result) Verdict() Verdict {
	verdict := Holds
	if r.Judged == 0 {
		verdict = Unknown
	}
	for _, f := range r.Findings {
		if f.Verdict == Broken {
			return Broken
		}
		verdict = Unknown
	}
	return verdict
}

// add keeps a finding if there is room for it. What is broken is kept first.
func (r *Result) add(verdict Verdict, evidence []Evidence, what string, args ...any) {
	if len(r.Findings) >= maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, Finding{Check: r.Check, Verdict: verdict, What: fmt.Sprintf(what, args...), Evidence: evidence})
}

// broken adds what is surely wrong.
func (r *Result) broken(evidence []Evidence, what string, args ...any) {
	r.add(Broken, evidence, what, args...)
}

// stopped adds that a check has ended early, if it has.
func (r *Result) stopped(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	r.add(Unknown, nil, "the check was stopped: %v", context.Cause(ctx))
	return true
}

// String says on one line for each check whether it holds, and explains each finding.
func (r Report) String() string {
	var text strings.Builder
	for _, result := range r.Results {
		fmt.Fprintf(&text, "%-16s  %-7s  %d %s\n", result.Check, result.Verdict(), result.Judged, result.Unit)
		for _, f := range result.Findings {
			text.WriteString(indent(f.String()))
		}
		if result.More > 0 {
			fmt.Fprintf(&text, "  (and %d more)\n", result.More)
		}
	}
	return text.String()
}

// String explains the finding on several lines: what is wrong, and who was told what.
func (f Finding) String() string {
	text := f.What + "\n"
	for _, e := range f.Evidence {
		text += indent(e.String())
	}
	return text
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
