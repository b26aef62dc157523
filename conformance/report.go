package conformance

import (
	"errors"
	"fmt"
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

// ginkgo returns ginkgo's name of a state.
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
