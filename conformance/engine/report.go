package engine

import (
	"errors"
	"fmt"
	"time"

	"snowglobe.test/conformance/transcript"
)

// State is how a case ended.
type State string

// The states of a case.
const (
	Passed State = "passed"
	Failed State = "failed"
	// NotApplicable is a case whose needs the target does not meet.
	NotApplicable State = "not applicable"
	// NotRun is a case that could not be judged: the target was not there, or gone, or the
	// run was interrupted.
	NotRun State = "not run"
)

// Result is how one case ended.
type Result struct {
	Case  Info  `json:"case"`
	State State `json:"state"`
	Finding
	// Start and Took are on the target's clock.
	Start time.Time     `json:"start"`
	Took  time.Duration `json:"tookNanoseconds"`
}

// Finding is what a case found that it did not expect.
type Finding struct {
	// Message says why the case failed, is not applicable or did not run.
	Message string `json:"message,omitempty"`
	// Location is the line of the case that failed, as "watch.go:42", and Step what it says.
	Location string `json:"location,omitempty"`
	Step     string `json:"step,omitempty"`
	// Exchanges are the last requests of a case that failed, and the answers.
	Exchanges []transcript.Exchange `json:"exchanges,omitempty"`
}

// Report is the result of a run.
type Report struct {
	// Target is the source the run was given.
	Target string `json:"target"`
	// Cluster is the name of the target; empty if it could not be opened.
	Cluster string `json:"cluster"`
	// Release is what the target reports to be; empty if it does not say.
	Release     string `json:"release,omitempty"`
	VirtualTime bool   `json:"virtualTime"`
	// Date is when the run began, whatever the target's clock said.
	Date time.Time `json:"date"`
	// Seed decided the order of the cases; 0 means that of the list.
	Seed  int64         `json:"seed,omitempty"`
	Start time.Time     `json:"start"`
	Took  time.Duration `json:"tookNanoseconds"`
	// Error says why not all cases could run.
	Error   string   `json:"error,omitempty"`
	Results []Result `json:"results"`
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

// Unjudged says that no case applies to the target, so that nothing is known of it.
func (r Report) Unjudged() error {
	if r.Count(NotApplicable) == 0 || r.Count(NotApplicable) < len(r.Results) {
		return nil
	}
	const nothing = "conformance: nothing could be judged: none of the %d cases applies to %s: %s %s"
	return fmt.Errorf(nothing, len(r.Results), r.Target, r.Results[0].Case.ID, r.Results[0].Message)
}

// A Reporter is called as a run goes on, never twice at a time.
type Reporter interface {
	// Begin is called when the target is open.
	Begin(target string, cases []Info)
	// Case is called after each case, even if it is not applicable, but not for those left when
	// a run ends early.
	Case(result Result)
	// End is called last, even if the target could not be opened.
	End(report Report)
}

// silent is a reporter that tells nothing.
type silent struct{}

func (silent) Begin(string, []Info) {}
func (silent) Case(Result)          {}
func (silent) End(Report)           {}
