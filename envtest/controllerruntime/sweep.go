package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"snowglobe.test/envtest"
)

// Sweep looks for faults that a controller does not survive. It runs the controller once
// as it is, and then again and again, each time with one fault at one of its API calls, and
// compares the end states. Each run is in virtual time, in its own control plane.
//
// The families of faults are those of Sieve (Sun et al., OSDI 2022), plus lost answers.
type Sweep struct {
	// Options are those of the control planes, such as envtest.WithCRDPaths.
	Options []envtest.Option
	// Manager is the options of the controller's manager, such as its scheme. Ports, and
	// the check that a controller's name is unique in its process, are switched off.
	Manager manager.Options
	// Setup adds the controller to a manager. It is called again after each crash.
	Setup func(mgr manager.Manager) error
	// Steps are what users do, one after the other, with a cluster admin's client.
	Steps []func(ctx context.Context, c client.Client) error
	// State is what is compared at the end. The default is all objects of Lists outside the
	// namespaces kube-*, without what differs from run to run: UIDs, revisions and times.
	State func(ctx context.Context, c client.Client) (string, error)
	// Lists are the kinds that the default State is about.
	Lists []client.ObjectList
	// Settle is how long, in virtual time, the controller may work after each step and
	// after a fault. The default is five minutes.
	Settle time.Duration
	// Families are the faults to try. The default is all.
	Families []Family
}

// Family is a kind of fault.
type Family string

const (
	// Intermediate crashes the manager right after a call that writes, before it receives
	// the answer, and starts it again.
	Intermediate Family = "intermediate"
	// Lost loses the answer to a call that writes: the manager goes on.
	Lost Family = "lost"
	// Stale keeps the manager's caches from hearing what happens from just before a call
	// that writes until half of Settle later. Meanwhile the manager looks again and again at
	// the state that it believes in.
	Stale Family = "stale"
	// Unobserved runs two steps of which the manager's caches see only the end result.
	Unobserved Family = "unobserved"
)

// families are all.
var families = []Family{Intermediate, Lost, Stale, Unobserved}

// defaultSettle is how long a controller may work by default.
const defaultSettle = 5 * time.Minute

// Finding is a fault after which the end state was different.
type Finding struct {
	Family Family
	// Call is where the fault was, such as "create configmaps default/a, time 2", or
	// "steps 1 and 2".
	Call string
	// Difference is that between the end states: lines with - are missing, lines with + extra.
	// It is empty if Err says why the run failed.
	Difference string
	Err        error
}

// String describes the finding.
func (f Finding) String() string {
	if f.Err != nil {
		return fmt.Sprintf("%s fault at %s: %v", f.Family, f.Call, f.Err)
	}
	return fmt.Sprintf("%s fault at %s: the end is another:\n%s", f.Family, f.Call, f.Difference)
}

// Report is the result of a sweep.
type Report struct {
	// Calls are those that have written something, in the order of the run without a fault.
	Calls []string
	// Runs is how many runs had a fault.
	Runs int
	// Findings are in the order of families and calls.
	Findings []Finding
	// Missed are faults whose call the run never reached, so that nothing was tried.
	Missed []string
}

// String lists the findings.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls that write, %d runs with a fault, %d findings", len(r.Calls), r.Runs, len(r.Findings))
	for _, missed := range r.Missed {
		fmt.Fprintf(&b, "\nnot tried, as the run did not come to it: %s", missed)
	}
	for _, finding := range r.Findings {
		fmt.Fprintf(&b, "\n%s", finding)
	}
	return b.String()
}

// Test runs the sweep, and fails the test for each finding.
func (s Sweep) Test(t testing.TB) {
	t.Helper()
	report, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls that write, %d runs with a fault, not come to: %q", len(report.Calls), report.Runs, report.Missed)
	for _, finding := range report.Findings {
		t.Error(finding)
	}
}

// Run runs the sweep, with as many runs at a time as there are processors. An error comes
// from the run without a fault, or from the context.
func (s Sweep) Run(ctx context.Context) (Report, error) {
	if s.Setup == nil || len(s.Steps) == 0 || s.State == nil && len(s.Lists) == 0 {
		return Report{}, errors.New("a sweep needs Setup, Steps, and State or Lists")
	}
	s.Settle = cmp.Or(s.Settle, defaultSettle)
	if s.Families == nil {
		s.Families = families
	}
	reference := &run{Sweep: s}
	if err := reference.simulate(); err != nil {
		return Report{}, fmt.Errorf("the run without a fault: %w", err)
	}
	report := Report{Calls: reference.calls.made}
	var faults []plannedFault
	for _, family := range s.Families {
		faults = append(faults, planned(family, report.Calls, len(s.Steps))...)
	}
	report.Runs = len(faults)
	findings, missed := make([]*Finding, len(faults)), make([]bool, len(faults))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, fault := range faults {
		group.Go(func() error {
			if ctx.Err() == nil {
				findings[i], missed[i] = s.try(fault, reference.state)
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	for i, fault := range faults {
		switch {
		case findings[i] != nil:
			report.Findings = append(report.Findings, *findings[i])
		case missed[i]:
			report.Missed = append(report.Missed, fmt.Sprintf("%s fault at %s", fault.family, fault.call))
		}
	}
	return report, err
}

// plannedFault is one fault: at a call, or between two steps.
type plannedFault struct {
	family Family
	call   string // of Report.Calls, or in words
	step   int    // that the manager does not observe, if the family is Unobserved
}

// planned are the faults of a family.
func planned(family Family, calls []string, steps int) (faults []plannedFault) {
	if family == Unobserved {
		for i := range steps - 1 {
			faults = append(faults, plannedFault{family, fmt.Sprintf("steps %d and %d", i+1, i+2), i})
		}
		return faults
	}
	for _, call := range calls {
		faults = append(faults, plannedFault{family: family, call: call})
	}
	return faults
}

// try is one run with a fault, which is missed if the run does not come to its call.
func (s Sweep) try(fault plannedFault, want string) (finding *Finding, missed bool) {
	r := &run{Sweep: s, fault: fault}
	if err := r.simulate(); err != nil {
		return &Finding{Family: fault.family, Call: fault.call, Err: err}, false
	}
	if r.state != want {
		difference := diff.Diff("without a fault", []byte(want), "with it", []byte(r.state))
		return &Finding{Family: fault.family, Call: fault.call, Difference: string(difference)}, false
	}
	return nil, fault.family != Unobserved && !r.calls.done
}
