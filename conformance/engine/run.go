package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"sync"
	"time"

	"snowglobe.test/conformance/transcript"
	"snowglobe.test/envtest/virtualtime"
)

// A Source opens a target for a run.
type Source[T any] interface {
	// Open starts or finds the target. The caller closes it.
	Open(ctx context.Context) (Target[T], error)
	// String names the source for people.
	String() string
}

// A Target is what cases are run on: a cluster, or a store.
type Target[T any] interface {
	// String names the target for people.
	String() string
	// Reports is the release that the target says it is; empty if it says none.
	Reports() string
	// Notice tells people, before the first case, what cases will do to the target; empty if that
	// is nothing they need to know.
	Notice(cases []Info) string
	// Unmet says what a case needs and the target lacks; empty if the case can run.
	Unmet(c Info) string
	// Do runs a case whose needs are met, and cleans up after it. The first failed assertion calls
	// fail, which must not return. The recorder is told of the requests of the case.
	Do(ctx context.Context, c Case[T], recorder *transcript.Recorder, fail func(message string, callerSkip ...int))
	// Check says, when a case has failed, why further ones can't be judged; nil if they can.
	Check(ctx context.Context) error
	// Close releases what Open took.
	Close(ctx context.Context) error
}

// Run opens the source's target, runs the cases on it, and closes it: one after another in
// their order, unless an option says otherwise. Cases that do not apply to the target are
// NotApplicable, with the reason. It ends early when the target is gone or the context is
// cancelled; the cases left are NotRun. The error says why cases could not run; failed cases
// are in the report (see Report.Err). reporter may be nil.
func Run[T any](ctx context.Context, source Source[T], cases []Case[T], reporter Reporter, opts ...Option,
) (Report, error) {
	return newRun[T](source.String(), reporter, opts).run(ctx, source, cases)
}

// Simulate is Run in virtual time. The source's target runs in a bubble with the cases,
// so it must not use sockets. If the context is cancelled, the running cases still
// finish, which takes next to no time. Durations in the report are virtual. Run cases one at a
// time if they use a server: some of its parts hold a mutex while they ask the store, and time
// stands still while another request waits for that mutex.
func Simulate[T any](ctx context.Context, source Source[T], cases []Case[T], reporter Reporter, opts ...Option,
) (Report, error) {
	var report Report
	var err error
	date := time.Now()
	bubble := virtualtime.Bubble(func() error {
		// Virtual time would not pass while something waits for a channel from outside
		// the bubble, so the outer context is only polled.
		inside, cancel := context.WithCancel(context.Background())
		defer cancel()
		simulated := newRun[T](source.String(), reporter, opts)
		simulated.interrupted = func() error { return context.Cause(ctx) }
		simulated.report.VirtualTime, simulated.report.Date = true, date
		report, err = simulated.run(inside, source, cases)
		return nil
	})
	return report, errors.Join(err, bubble)
}

// options are how cases are run.
type options struct {
	parallel int
	seed     int64
	notices  io.Writer // what is said before the first case
}

// An Option changes how cases are run.
type Option func(*options)

// Parallel runs up to n cases at a time; those that are Serial run alone, after the others.
func Parallel(n int) Option { return func(o *options) { o.parallel = n } }

// Shuffled runs the cases in a random order, which the seed decides; 0 keeps their order.
func Shuffled(seed int64) Option { return func(o *options) { o.seed = seed } }

// Announced has the run write the target's notice, before its first case.
func Announced(w io.Writer) Option { return func(o *options) { o.notices = w } }

// execution is one run on its way.
type execution[T any] struct {
	options
	reporter    Reporter
	interrupted func() error // why no further case should begin, or nil
	target      Target[T]

	mu      sync.Mutex
	report  Report
	stopped error  // why no further case can be judged
	reason  string // the same, for the results of the remaining cases
}

func newRun[T any](source string, reporter Reporter, opts []Option) *execution[T] {
	reporter = cmp.Or[Reporter](reporter, silent{})
	e := &execution[T]{options: options{parallel: 1, notices: io.Discard}, reporter: reporter}
	for _, opt := range opts {
		opt(&e.options)
	}
	e.interrupted = func() error { return nil }
	e.report = Report{Target: source, Date: time.Now(), Seed: e.seed}
	return e
}

func (e *execution[T]) run(ctx context.Context, source Source[T], cases []Case[T]) (Report, error) {
	e.report.Start = time.Now()
	target, err := source.Open(ctx)
	if err != nil {
		e.stop(err, "")
		e.leave(cases)
		return e.end(err)
	}
	e.target = target
	e.report.Cluster, e.report.Release = target.String(), target.Reports()
	infos := Infos(cases)
	// An output that is gone does not end the run.
	_, _ = io.WriteString(e.notices, target.Notice(infos))
	e.reporter.Begin(e.report.Target, infos)
	beside, alone := inOrder(cases, e.seed, e.parallel)
	e.runAll(ctx, beside, e.parallel)
	e.runAll(ctx, alone, 1)
	closed := target.Close(ctx)
	if e.stopped != nil && errors.Is(closed, e.stopped) {
		return e.end(closed) // closed includes e.stopped, a crash
	}
	return e.end(errors.Join(e.stopped, closed))
}

// end completes the report.
func (e *execution[T]) end(err error) (Report, error) {
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
func inOrder[T any](cases []Case[T], seed int64, parallel int) (beside, alone [][]Case[T]) {
	cases = slices.Clone(cases)
	if seed != 0 {
		rand.New(rand.NewSource(seed)).Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	}
	if parallel > 1 {
		slices.SortStableFunc(cases, func(a, b Case[T]) int { return waiting(b) - waiting(a) })
	}
	apart := map[string]int{} // the index in beside
	for _, c := range cases {
		i, ok := apart[c.Apart]
		switch {
		case parallel > 1 && c.Serial:
			alone = append(alone, []Case[T]{c})
		case parallel > 1 && c.Apart != "" && ok:
			beside[i] = append(beside[i], c)
		default:
			apart[c.Apart] = len(beside)
			beside = append(beside, []Case[T]{c})
		}
	}
	return beside, alone
}

func waiting[T any](c Case[T]) int {
	if c.Waits {
		return 1
	}
	return 0
}

// runAll runs cases, up to parallel of them at a time, until the run stops.
func (e *execution[T]) runAll(ctx context.Context, cases [][]Case[T], parallel int) {
	left := make(chan []Case[T], len(cases))
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
func (e *execution[T]) runOne(ctx context.Context, c Case[T]) {
	if stopped := e.stop(errors.Join(context.Cause(ctx), e.interrupted()), ""); stopped {
		e.leave([]Case[T]{c})
		return
	}
	result := Judge(ctx, e.target, c)
	if result.State == Failed && ctx.Err() == nil {
		if gone := e.stop(e.target.Check(ctx), "the target is gone: "); gone {
			e.leave([]Case[T]{c})
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

// stop stops the run if why is not nil, and reports whether the run has stopped by now. The
// results of the remaining cases say prefix and why.
func (e *execution[T]) stop(why error, prefix string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped == nil && why != nil {
		e.stopped, e.reason = why, prefix+why.Error()
	}
	return e.stopped != nil
}

// leave adds the results of cases that are left because the run has stopped.
func (e *execution[T]) leave(cases []Case[T]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range cases {
		e.report.Results = append(e.report.Results,
			Result{Case: c.Info(), State: NotRun, Finding: Finding{Message: e.reason}, Start: time.Now()})
	}
}
