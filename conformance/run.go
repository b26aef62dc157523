package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/transcript"
	"snowglobe.test/envtest/virtualtime"
)

// Run opens the source's cluster, runs the cases on it, and closes it: one after another in
// their order, unless an option says otherwise. Cases that do not apply to the cluster are
// NotApplicable, with the reason. It ends early when the cluster is gone or the context is
// cancelled; the cases left are NotRun. The error says why cases could not run; failed cases
// are in the report (see Report.Err). reporter may be nil.
func Run(ctx context.Context, source Source, cases []suite.Case, reporter Reporter, opts ...RunOption) (Report, error) {
	return newRun(source, reporter, opts, func() error { return nil }).run(ctx, source, cases)
}

// Simulate is Run in virtual time. The source's cluster runs in a bubble with the cases,
// so it must not use sockets. If the context is cancelled, the running cases still
// finish, which takes next to no time. Durations in the report are virtual. Run cases one at a
// time if they use a server: some of its parts hold a mutex while they ask the store, and time
// stands still while another request waits for that mutex.
func Simulate(ctx context.Context, source Source, cases []suite.Case, reporter Reporter, opts ...RunOption) (Report, error) {
	var report Report
	var err error
	date := time.Now()
	bubble := virtualtime.Bubble(func() error {
		// Virtual time would not pass while something waits for a channel from outside
		// the bubble, so the outer context is only polled.
		inside, cancel := context.WithCancel(context.Background())
		defer cancel()
		simulated := newRun(source, reporter, opts, func() error { return context.Cause(ctx) })
		simulated.report.VirtualTime, simulated.report.Date = true, date
		report, err = simulated.run(inside, source, cases)
		return nil
	})
	return report, errors.Join(err, bubble)
}

// A RunOption changes how cases are run.
type RunOption func(*execution)

// Parallel runs up to n cases at a time; those that are Serial run alone, after the others.
func Parallel(n int) RunOption { return func(e *execution) { e.parallel = n } }

// Shuffled runs the cases in a random order, which the seed decides; 0 keeps their order.
func Shuffled(seed int64) RunOption { return func(e *execution) { e.report.Seed = seed } }

// execution is one run on its way.
type execution struct {
	parallel    int
	reporter    Reporter
	notices     io.Writer    // what is said before the first case
	interrupted func() error // why no further case should begin, or nil
	cluster     *suite.Cluster

	mu      sync.Mutex
	report  Report
	stopped error  // why no further case can be judged
	reason  string // ... as the cases left say it
}

func newRun(source Source, reporter Reporter, opts []RunOption, interrupted func() error) *execution {
	if reporter == nil {
		reporter = Text{Out: io.Discard}
	}
	e := &execution{parallel: 1, reporter: reporter, notices: io.Discard, interrupted: interrupted, report: Report{Target: source.String(), Date: time.Now()}}
	for _, opt := range opts {
		opt(e)
	}
	return e
}

func (e *execution) run(ctx context.Context, source Source, cases []suite.Case) (Report, error) {
	e.report.Start = time.Now()
	cluster, err := Open(ctx, source, cases)
	e.cluster = cluster
	if err != nil {
		e.stop(err, "")
		e.leave(cases)
		return e.end(err)
	}
	e.report.Cluster, e.report.Release = cluster.Name, cmp.Or(cluster.Reported, cluster.Release)
	e.announce(cases)
	e.reporter.Begin(e.report.Target, len(cases))
	beside, alone := inOrder(cases, e.report.Seed, e.parallel)
	e.runAll(ctx, beside, e.parallel)
	e.runAll(ctx, alone, 1)
	closed := shut(ctx, cluster)
	if e.stopped != nil && errors.Is(closed, e.stopped) {
		return e.end(closed) // a crash, which is told once
	}
	return e.end(errors.Join(e.stopped, closed))
}

// end completes the report.
func (e *execution) end(err error) (Report, error) {
	e.report.Took = time.Since(e.report.Start)
	if err != nil {
		e.report.Error = err.Error()
		err = fmt.Errorf("conformance: %w", err)
	}
	e.reporter.End(e.report)
	return e.report, err
}

// inOrder returns the cases in the order of a seed: those that may run beside others, and those
// that must run alone. Those of one slice run one after another. Whatever takes long by itself
// begins first, so that nothing is left to wait for at the end.
func inOrder(cases []suite.Case, seed int64, parallel int) (beside, alone [][]suite.Case) {
	cases = slices.Clone(cases)
	if seed != 0 {
		rand.New(rand.NewSource(seed)).Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	}
	if parallel > 1 {
		slices.SortStableFunc(cases, func(a, b suite.Case) int { return waiting(b) - waiting(a) })
	}
	apart := map[string]int{} // the index in beside
	for _, c := range cases {
		i, ok := apart[c.Apart]
		switch {
		case parallel > 1 && c.Serial:
			alone = append(alone, []suite.Case{c})
		case parallel > 1 && c.Apart != "" && ok:
			beside[i] = append(beside[i], c)
		default:
			apart[c.Apart] = len(beside)
			beside = append(beside, []suite.Case{c})
		}
	}
	return beside, alone
}

func waiting(c suite.Case) int {
	if c.Waits {
		return 1
	}
	return 0
}

// runAll runs cases, up to parallel of them at a time, until the run stops.
func (e *execution) runAll(ctx context.Context, cases [][]suite.Case, parallel int) {
	left := make(chan []suite.Case, len(cases))
	for _, c := range cases {
		left <- c
	}
	close(left)
	var lanes sync.WaitGroup
	for range min(parallel, len(cases)) {
		lanes.Go(func() {
			for some := range left {
				for _, c := range some {
					e.runOne(ctx, c)
				}
			}
		})
	}
	lanes.Wait()
}

// runOne runs a case, unless the run has stopped, and reports it.
func (e *execution) runOne(ctx context.Context, c suite.Case) {
	if stopped := e.stop(errors.Join(context.Cause(ctx), e.interrupted()), ""); stopped {
		e.leave([]suite.Case{c})
		return
	}
	result := runCase(ctx, e.cluster, c)
	if result.State == Failed {
		if gone := e.stop(check(ctx, e.cluster), "the target is gone: "); gone {
			e.leave([]suite.Case{c})
			return
		}
	}
	if result.State == NotRun {
		e.stop(context.Cause(ctx), "")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Results = append(e.report.Results, result)
	e.reporter.Case(result)
}

// stop stops the run if there is a reason to, which the cases left are told after a prefix,
// and reports whether the run has stopped by now.
func (e *execution) stop(why error, prefix string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped == nil && why != nil {
		e.stopped, e.reason = why, prefix+why.Error()
	}
	return e.stopped != nil
}

// leave adds the results of cases that are left because the run has stopped.
func (e *execution) leave(cases []suite.Case) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range cases {
		e.report.Results = append(e.report.Results, Result{Case: c, State: NotRun, Finding: Finding{Message: e.reason}, Start: time.Now()})
	}
}

// failure is the panic value with which a failed assertion leaves the case.
type failure struct{ found Finding }

func runCase(ctx context.Context, c *suite.Cluster, tested suite.Case) (result Result) {
	result = Result{Case: tested, State: Passed, Start: time.Now()}
	if result.Message = tested.Unmet(c); result.Message != "" {
		result.State = NotApplicable
		return result
	}
	recorder := transcript.NewRecorder()
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			result.State, result.Finding = Failed, reason.found
		default:
			result.State = Failed
			result.Message = fmt.Sprintf("panic: %v\n%s", reason, debug.Stack())
			result.Exchanges = recorder.Exchanges()
		}
		result.Took = time.Since(result.Start)
		if cause := context.Cause(ctx); cause != nil && result.State == Failed {
			result.State, result.Finding = NotRun, Finding{Message: "interrupted: " + cause.Error()}
		}
	}()
	Judge(ctx, c, tested, recorder, func(found Finding, _ int) { panic(failure{found}) })
	return result
}

// check says why no further case can be judged, nil if they can.
func check(ctx context.Context, cluster *suite.Cluster) error {
	if cluster.Check == nil || ctx.Err() != nil {
		return nil
	}
	return cluster.Check(ctx)
}

// shut closes what opening the cluster took.
func shut(ctx context.Context, cluster *suite.Cluster) error {
	if cluster.Close == nil {
		return nil
	}
	return cluster.Close(ctx)
}
