package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/wire"
)

// Load is one measurement of watch fan-out: some clients write and many watch.
type Load struct {
	numbering
	Options  Options
	on       Backend
	from     string // resourceVersion that the watches start after
	watchers []*watcher

	begun    time.Time     // zero of the load's clock, which writers and watchers share
	warm     time.Duration // when the warm-up has ended, on that clock
	caughtUp chan struct{} // closed when laggards read on as fast as they can
	opening  *measure.Latencies
	delivery *measure.Latencies
	writing  *measure.Latencies
	timedOut bool // watchers did not have all events in time
}

// Backend is what a load writes to and watches: an API server, or a part of one.
type Backend interface {
	// Prepare makes the objects of the load, one for each writer, and connects writers and
	// watchers. It returns the revision that the watches start after.
	Prepare(ctx context.Context) (from string, err error)
	// Watch has a watcher watch the objects of its group after a revision.
	Watch(ctx context.Context, watcher, group int, from string) (Stream, error)
	// Write puts a stamp on the object of a writer.
	Write(ctx context.Context, writer int, at wire.Stamp) error
	// Close ends all connections, and removes what prepare has made even if it failed.
	Close(ctx context.Context) error
}

func newLoad(opts Options, on func(*Load) Backend) *Load {
	l := &Load{
		Options: opts, caughtUp: make(chan struct{}), opening: measure.NewLatencies(), delivery: measure.NewLatencies(),
		writing:   measure.NewLatencies(),
		numbering: numbering{events: opts.Events(), Objects: opts.Writers, Groups: opts.Shape.Groups()},
	}
	l.on = on(l)
	return l
}

// parallelOpens bounds how many watches are opened at a time.
const parallelOpens = 32

// Run runs one load, and says when it comes to a phase. It returns a result even if the error
// is ErrDelivery.
func Run(ctx context.Context, opts Options, transport string, on func(*Load) Backend,
	comesTo func(measure.Phase)) (_ *Result, err error) {
	l := newLoad(opts, on)
	defer func() { err = errors.Join(err, l.close(ctx)) }()
	if l.from, err = l.on.Prepare(ctx); err != nil {
		return nil, err
	}
	comesTo(measure.PhaseOpening)
	if err := l.openWatches(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(opts.Progress, "%s: %d watchers, %g events/s for %s\n", transport, opts.Watchers, opts.Rate,
		opts.Duration)
	comesTo(measure.PhaseOpen)
	written, err := l.run(ctx, comesTo)
	comesTo(measure.PhaseEnded)
	if err != nil {
		return nil, err
	}
	result := l.sum(transport, written)
	fmt.Fprintf(opts.Progress, "%s: %d deliveries, p50 %s, p99 %s\n", transport, result.Deliveries,
		measure.Round(result.Latency.P50), measure.Round(result.Latency.P99))
	return result, l.defects()
}

// CaptureEvent returns an event of a watch as an API server writes it for such a load.
func CaptureEvent(ctx context.Context, opts Options, on func(*Load) Backend) (event []byte, err error) {
	opts.Watchers, opts.Decode, opts.Writers, opts.Namespaces, opts.Selectors = 1, false, 1, 1, 1
	l := newLoad(opts, on)
	defer func() { err = errors.Join(err, l.close(ctx)) }()
	if l.from, err = l.on.Prepare(ctx); err != nil {
		return nil, err
	}
	events, err := l.on.Watch(ctx, 0, 0, l.from)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	if err := l.on.Write(ctx, 0, wire.Stamp{}); err != nil {
		return nil, err
	}
	got, err := events.Receive(ctx, func(wire.Stamp, time.Duration) (bool, error) { return true, nil })
	if err == nil && !got {
		err = errors.New("the watch ended before it")
	}
	return events.(*raw).last, err
}

// NamespaceNumber is which of the load's namespaces has the objects of a group, counted from 0.
func (l *Load) NamespaceNumber(group int) int { return group % l.Options.Namespaces }

// Selector is the value of the label of a group of objects.
func (l *Load) Selector(group int) string { return strconv.Itoa(group / l.Options.Namespaces) }

// Now is the time on the load's clock.
func (l *Load) Now() time.Duration { return time.Since(l.begun) }

// Payload is the data of each object.
func (l *Load) Payload() string { return strings.Repeat("x", l.Options.PayloadBytes) }

func (l *Load) close(ctx context.Context) error {
	for _, w := range l.watchers {
		w.close()
	}
	return l.on.Close(ctx)
}

func (l *Load) openWatches(ctx context.Context) error {
	var opening errgroup.Group
	opening.SetLimit(parallelOpens)
	for number := range l.Options.Watchers {
		w := &watcher{number: number, load: l, pace: l.Options.paceOf(number),
			tally: newTally(l.numbering, number%l.Groups)}
		l.watchers = append(l.watchers, w)
		opening.Go(func() error {
			began := time.Now()
			err := w.open(ctx)
			l.opening.Record(number, time.Since(began))
			return err
		})
	}
	return opening.Wait() // the other errors are likely the same
}

// errDrainTimeout ends watchers that still wait for the last event.
var errDrainTimeout = errors.New("the last event did not arrive in time")

// run writes and watches until all watchers have the last event or the drain timeout
// expires, and returns how long the writing took.
func (l *Load) run(ctx context.Context, comesTo func(measure.Phase)) (written time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.begun = time.Now()
	work, ctx := errgroup.WithContext(ctx)
	var prompt sync.WaitGroup
	for _, w := range l.watchers {
		if w.pace == paceFull {
			prompt.Add(1)
		}
		work.Go(func() error {
			if w.pace == paceFull {
				defer prompt.Done()
			}
			return w.follow(ctx)
		})
	}
	work.Go(func() error {
		prompt.Wait()
		close(l.caughtUp)
		return nil
	})
	work.Go(func() error {
		if err := l.warmUp(ctx); err != nil {
			return err
		}
		comesTo(measure.PhaseBegun)
		l.warm = l.Now()
		err := l.write(ctx)
		written = l.Now() - l.warm
		time.AfterFunc(l.Options.Drain, func() { cancel(errDrainTimeout) })
		return err
	})
	err = work.Wait()
	if l.timedOut = err != nil && errors.Is(context.Cause(ctx), errDrainTimeout); l.timedOut {
		return written, nil
	}
	return written, err
}

// defects returns one error for everything the watchers missed, nil if they missed nothing. A laggard
// may miss what came after its watch had expired.
func (l *Load) defects() error {
	sick, first := 0, ""
	for _, w := range l.watchers {
		if words := w.tally.defects(); words != "" && !w.expired {
			if sick++; sick == 1 {
				first = fmt.Sprintf("watcher %d %s", w.number+1, words)
			}
		}
	}
	if sick == 0 {
		return nil
	}
	return &deliveryError{fmt.Sprintf("%d of %d watchers; %s", sick, l.Options.Watchers, first)}
}

// ErrDelivery says that a watcher missed an event, or saw one twice or out of order.
var ErrDelivery = errors.New("events were not delivered once each and in order")

// deliveryError is an ErrDelivery that says what was not delivered.
type deliveryError struct{ defects string }

// Error implements error.
func (e *deliveryError) Error() string { return fmt.Sprintf("%v: %s", ErrDelivery, e.defects) }

// Unwrap returns ErrDelivery.
func (e *deliveryError) Unwrap() error { return ErrDelivery }
