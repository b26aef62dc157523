package edge

import (
	"context"
	"errors"

	"snowglobe.test/envtest/fault"
)

// Ways are the ways an operation can go. Execute picks the one that the rules
// ask for; R is what the operation's caller gets. Proceed and Fail are required.
type Ways[R any] struct {
	// Proceed lets the operation happen.
	Proceed func() R
	// Fail answers with an error instead.
	Fail func(error) R
	// Discard lets the operation happen and throws its answer away: before the
	// Fail of LoseReply, and before the Proceed of Duplicate. Nil is Proceed.
	Discard func()
	// Drop gives no answer; nil fails once the caller gives up or the server stops.
	Drop func() R
	// Cancel acts as if the caller had gone; nil fails with context.Canceled.
	Cancel func() R
	// Abort is for an operation whose wait the context or a crash ended; nil is Fail.
	Abort func(error) R
	// Failed reports whether the answer of Proceed or Cancel is a failure. In virtual time an
	// operation that fails again and again takes longer (virtualtime.Latency). Nil means that
	// its failures do not count.
	Failed func(R) bool
}

// Call is Execute for a call that returns an answer or an error.
func Call[T any](
	ctx context.Context, i *Injector, describe func() fault.Operation, do func(context.Context) (T, error),
) (T, error) {
	if !i.Concerned() {
		return do(ctx)
	}
	r := Execute(ctx, i, describe, Ways[result[T]]{
		Proceed: func() result[T] {
			answer, err := do(ctx)
			return result[T]{answer, err}
		},
		Fail:   func(err error) result[T] { return result[T]{err: err} },
		Failed: func(r result[T]) bool { return r.err != nil },
	})
	return r.answer, r.err
}

type result[T any] struct {
	answer T
	err    error
}

// Execute asks the rules about an operation and lets it go the way they say. It
// is the only place that knows what each action means for an operation.
func Execute[R any](ctx context.Context, i *Injector, describe func() fault.Operation, ways Ways[R]) R {
	if !i.Concerned() {
		return ways.Proceed()
	}
	asked := func() fault.Operation {
		op := describe()
		op.Server = i.server
		return op
	}
	d, err := i.decide(ctx, asked)
	if err != nil {
		if ways.Abort != nil {
			return ways.Abort(err)
		}
		return ways.Fail(err)
	}
	goOn := ways.Proceed
	switch d.Kind {
	case fault.Fail:
		i.fail(asked)
		return ways.Fail(d.Err())
	case fault.LoseReply:
		i.report(asked, true)
		ways.discard()
		return ways.Fail(d.Err())
	case fault.Duplicate:
		ways.discard()
	case fault.Drop:
		if ways.Drop != nil {
			return ways.Drop()
		}
		return ways.Fail(i.Lost(ctx))
	case fault.Cancel:
		i.report(asked, true)
		if ways.Cancel == nil {
			return ways.Fail(context.Canceled)
		}
		goOn = ways.Cancel
	}
	r := goOn()
	if ways.Failed != nil {
		i.report(asked, ways.Failed(r))
	}
	return r
}

func (w *Ways[R]) discard() {
	if w.Discard != nil {
		w.Discard()
		return
	}
	w.Proceed()
}

// decide is fault.Set.At for the server. Compact, LoseLeader and Crash are done when it returns. A
// server that has ended asks no rules, but what it does still takes time.
func (i *Injector) decide(ctx context.Context, asked func() fault.Operation) (fault.Decision, error) {
	if i.life.Err() != nil {
		if latency := i.set.Latency(); latency != nil {
			takes, _ := latency.Of(asked())
			latency.Take(takes)
		}
		return fault.Decision{}, nil
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(i.life, func() { cancel(errEnded) })()
	d, err := i.set.At(waiting, asked)
	if err == nil {
		d, err = i.affect(waiting, d)
	}
	if err != nil && !errors.Is(err, fault.ErrCrashed) && errors.Is(context.Cause(waiting), errEnded) {
		return fault.Decision{}, nil // the server ended during the wait or the effect
	}
	return d, err
}

// affect does what a rule does to the surroundings of the operation.
func (i *Injector) affect(ctx context.Context, d fault.Decision) (fault.Decision, error) {
	var effect func(context.Context) error
	switch d.Kind {
	case fault.Compact:
		effect = i.effects.Compact
	case fault.LoseLeader:
		effect = i.effects.LoseLeader
	case fault.Crash:
		if i.effects.Crash != nil {
			cause := d.Blame("%w before %s, because of the rule %q", fault.ErrCrashed, d.Operation(), d.Rule())
			i.effects.Crash(cause)
			return fault.Decision{}, cause
		}
	default:
		return d, nil
	}
	if effect == nil {
		return fault.Decision{}, d.Blame("rule %q: %s cannot be done here", d.Rule(), d.Kind)
	}
	if err := effect(ctx); err != nil {
		return fault.Decision{}, d.Blame("rule %q: %w", d.Rule(), err)
	}
	return fault.Decision{}, nil
}

// report tells the Latency, if there is one, whether the operation failed.
func (i *Injector) report(asked func() fault.Operation, failed bool) {
	if latency := i.set.Latency(); latency != nil {
		latency.Report(asked(), failed)
	}
}

// fail tells the Latency, if there is one, that a rule has made the operation fail.
func (i *Injector) fail(asked func() fault.Operation) {
	if latency := i.set.Latency(); latency != nil {
		latency.Fail(asked())
	}
}

// Delivery is what becomes of one event of a stream.
type Delivery struct {
	// Times is how often the receiver gets the event.
	Times int
	// Last is the end of the stream, with Err if not nil, instead of the event.
	Last bool
	Err  error
}

// Deliver is Execute for an event of a stream.
func Deliver(ctx context.Context, i *Injector, describe func() fault.Operation) Delivery {
	times := 1
	return Execute(ctx, i, describe, Ways[Delivery]{
		Proceed: func() Delivery { return Delivery{Times: times} },
		Discard: func() { times++ },
		Fail:    func(err error) Delivery { return Delivery{Last: true, Err: err} },
		Drop:    func() Delivery { return Delivery{} },
		Cancel:  func() Delivery { return Delivery{Last: true} },
	})
}
