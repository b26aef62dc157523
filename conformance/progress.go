package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Reporter is called as a run goes on, on the run's goroutine.
type Reporter interface {
	// Begin is called before the target is opened.
	Begin(target string, cases int)
	// Case is called after each case, even if it was skipped.
	Case(result Result)
	// End is called last, even if the target could not be opened.
	End(report Report)
}

type silent struct{}

func orSilent(reporter Reporter) Reporter {
	if reporter == nil {
		return silent{}
	}
	return reporter
}

func (silent) Begin(string, int) {}
func (silent) Case(Result)       {}
func (silent) End(Report)        {}

// Text is a reporter for people: one line for each case, and a summary.
type Text struct{ Out io.Writer }

var marks = map[State]string{Passed: "ok  ", Failed: "FAIL", Skipped: "skip"}

// Begin implements Reporter.
func (t Text) Begin(target string, cases int) {
	t.printf("%d cases on %s\n", cases, target)
}

// Case implements Reporter.
func (t Text) Case(r Result) {
	if r.State == Skipped {
		t.printf("%s %s (%s)\n", marks[r.State], r.Case.ID, r.Message)
		return
	}
	t.printf("%s %s (%s)\n", marks[r.State], r.Case.ID, r.Took.Round(time.Millisecond))
	if r.State == Failed {
		t.printf("%s\n", indent(explain(r)))
	}
}

// explain describes what was promised and what was found.
func explain(r Result) string {
	text := "promise: " + r.Case.Promise + "\n"
	if r.Location != "" {
		text += "at: " + r.Location + "\n"
	}
	return text + r.Message
}

func indent(text string) string {
	return "     " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n     ")
}

// End implements Reporter.
func (t Text) End(r Report) {
	clock := ""
	if r.VirtualTime {
		clock = " of virtual time"
	}
	t.printf("%s: %d passed, %d failed, %d skipped in %s%s\n", r.Target, r.Count(Passed), r.Count(Failed), r.Count(Skipped),
		r.Took.Round(time.Millisecond), clock)
}

// printf ignores errors: an output that is gone does not fail the run.
func (t Text) printf(format string, args ...any) { _, _ = fmt.Fprintf(t.Out, format, args...) }

// JSON is a reporter for programs: it writes the report as one document when the run
// has ended.
type JSON struct{ Out io.Writer }

// Begin implements Reporter.
func (JSON) Begin(string, int) {}

// Case implements Reporter.
func (JSON) Case(Result) {}

// End implements Reporter.
func (j JSON) End(r Report) { _ = writeJSON(j.Out, r) }

func writeJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}
