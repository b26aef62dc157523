// Package reports owns how results of conformance cases are told: as lines, JSON, JUnit, a page, a
// comparison of two reports, and the list of cases. It runs no case.
package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"snowglobe.test/conformance/engine"
)

// For returns the reporter of a form of output, text or JSON; out nil means standard output.
func For(output string, out io.Writer) (engine.Reporter, error) {
	out = cmp.Or[io.Writer](out, os.Stdout)
	switch output {
	case "", OutputText:
		return Text{Out: out}, nil
	case OutputJSON:
		return JSON{Out: out}, nil
	}
	return nil, fmt.Errorf("conformance: output %q is not known; use %q or %q", output, OutputText, OutputJSON)
}

// Text is a reporter for people: one line for each case, and a summary.
type Text struct{ Out io.Writer }

var marks = map[engine.State]string{engine.Passed: "ok  ", engine.Failed: "FAIL", engine.NotApplicable: "n/a "}

// Begin implements Reporter.
func (t Text) Begin(target string, cases []engine.Info) {
	t.printf("%s on %s\n", counted(cases), target)
}

// Case implements Reporter.
func (t Text) Case(r engine.Result) {
	if r.State == engine.NotApplicable {
		t.printf("%s %s (%s)\n", marks[r.State], r.Case.ID, r.Message)
		return
	}
	t.printf("%s %s (%s)\n", marks[r.State], r.Case.ID, r.Took.Round(time.Millisecond))
	if r.State == engine.Failed {
		t.printf("%s\n", indent(Explain(r, shortExchanges)))
	}
}

// counted is the number of cases, and how many have which reach if some of them are Linked.
func counted(cases []engine.Info) string {
	text := english.Plural(len(cases), "case", "")
	if slices.ContainsFunc(cases, func(c engine.Info) bool { return c.Reach() == engine.Linked }) {
		text += " (" + engine.Reaches(cases) + ")"
	}
	return text
}

func indent(text string) string {
	return "     " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n     ")
}

// End implements Reporter. If the target could not be opened there is nothing to sum up,
// and the error says it all.
func (t Text) End(r engine.Report) {
	if r.Cluster == "" {
		return
	}
	left := ""
	if n := r.Count(engine.NotRun); n > 0 {
		left = fmt.Sprintf(", %d not run", n)
	}
	clock := ""
	if r.VirtualTime {
		clock = " of virtual time"
	}
	t.printf("%s: %d passed, %d failed, %d not applicable%s in %s%s\n", r.Target, r.Count(engine.Passed),
		r.Count(engine.Failed), r.Count(engine.NotApplicable), left,
		r.Took.Round(time.Millisecond), clock)
}

// printf ignores errors: an output that is gone does not fail the run.
func (t Text) printf(format string, args ...any) { _, _ = fmt.Fprintf(t.Out, format, args...) }

// JSON is a reporter for programs: it writes the report as one document at the end.
type JSON struct{ Out io.Writer }

// Begin implements Reporter.
func (JSON) Begin(string, []engine.Info) {}

// Case implements Reporter.
func (JSON) Case(engine.Result) {}

// End implements Reporter.
func (j JSON) End(r engine.Report) { _ = writeJSON(j.Out, r) }

func writeJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}
