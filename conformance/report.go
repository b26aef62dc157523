package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"
)

// State is how a case ended.
type State string

// The states of a case.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped"
)

// Result is how one case ended.
type Result struct {
	Case  Case  `json:"case"`
	State State `json:"state"`
	// Message says why the case failed or was skipped.
	Message string `json:"message,omitempty"`
	// Location is the line of the case that failed, as "watch.go:42".
	Location string `json:"location,omitempty"`
	// Start and Took are on the target's clock.
	Start time.Time     `json:"start"`
	Took  time.Duration `json:"tookNanoseconds"`
}

// Report is the result of a run.
type Report struct {
	// Target is the source the run was given.
	Target string `json:"target"`
	// Cluster is the name of the cluster; empty if it could not be opened.
	Cluster     string        `json:"cluster"`
	VirtualTime bool          `json:"virtualTime"`
	Start       time.Time     `json:"start"`
	Took        time.Duration `json:"tookNanoseconds"`
	Results     []Result      `json:"results"`
}

// Count returns how many cases ended in a state.
func (r Report) Count(state State) int {
	n := 0
	for _, result := range r.Results {
		if result.State == state {
			n++
		}
	}
	return n
}

// ErrFailed is wrapped by the error of a report in which a case failed.
var ErrFailed = errors.New("conformance: broken promises")

// Err returns nil if no case failed, and names those that did.
func (r Report) Err() error {
	if r.Count(Failed) == 0 {
		return nil
	}
	err := fmt.Errorf("%w at %s: %d of %d cases failed:", ErrFailed, r.Target, r.Count(Failed), len(r.Results))
	for _, result := range r.Results {
		if result.State == Failed {
			err = fmt.Errorf("%w %s", err, result.Case.ID)
		}
	}
	return err
}

// WriteJUnit writes the report as JUnit XML, for CI systems. It overwrites an existing
// file and creates missing folders.
func (r Report) WriteJUnit(path string) error {
	config := reporters.JunitReportConfig{OmitLeafNodeType: true, OmitSpecLabels: true}
	if err := reporters.GenerateJUnitReportWithConfig(r.ginkgo(), path, config); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	return nil
}

func (s State) ginkgo() types.SpecState {
	switch s {
	case Passed:
		return types.SpecStatePassed
	case Failed:
		return types.SpecStateFailed
	}
	return types.SpecStateSkipped
}

// ginkgo converts the report to ginkgo's, for ginkgo's writers.
func (r Report) ginkgo() types.Report {
	suite := types.Report{
		SuitePath:        "snowglobe.test/conformance",
		SuiteDescription: "conformance of " + r.Target,
		SuiteSucceeded:   r.Count(Failed) == 0,
		StartTime:        r.Start,
		EndTime:          r.Start.Add(r.Took),
		RunTime:          r.Took,
	}
	for _, result := range r.Results {
		spec := types.SpecReport{
			ContainerHierarchyTexts: []string{string(result.Case.Area)},
			LeafNodeType:            types.NodeTypeIt,
			LeafNodeText:            result.Case.ID + ": " + result.Case.Promise,
			State:                   result.State.ginkgo(),
			StartTime:               result.Start,
			EndTime:                 result.Start.Add(result.Took),
			RunTime:                 result.Took,
		}
		if result.Message != "" {
			spec.Failure = types.Failure{
				Message:             result.Message,
				FailureNodeType:     types.NodeTypeIt,
				FailureNodeContext:  types.FailureNodeIsLeafNode,
				Location:            types.NewCustomCodeLocation(result.Location),
				FailureNodeLocation: types.NewCustomCodeLocation(result.Location),
			}
		}
		suite.SpecReports = append(suite.SpecReports, spec)
	}
	return suite
}

// A Reporter is called as a run goes on, on the run's goroutine.
type Reporter interface {
	// Begin is called before the target is opened.
	Begin(target string, cases int)
	// Case is called after each case, even if it was skipped.
	Case(result Result)
	// End is called last, even if the target could not be opened.
	End(report Report)
}

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

// JSON is a reporter for programs: it writes the report as one document at the end.
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
