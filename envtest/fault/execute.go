package fault

import "context"

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
}

// Execute asks the rules about an operation and lets it go the way they say. It
// is the only place that knows what each action means for an operation.
func Execute[R any](ctx context.Context, i *Injector, describe func() Operation, ways Ways[R]) R {
	if !i.concerned() {
		return ways.Proceed()
	}
	d, err := i.At(ctx, describe)
	if err != nil {
		if ways.Abort != nil {
			return ways.Abort(err)
		}
		return ways.Fail(err)
	}
	switch d.Kind {
	case Fail:
		i.Report(describe, true)
		i.takeTimeToFail(describe)
		return ways.Fail(d.Err())
	case LoseReply:
		i.Report(describe, true)
		ways.discard()
		return ways.Fail(d.Err())
	case Duplicate:
		ways.discard()
	case Drop:
		if ways.Drop != nil {
			return ways.Drop()
		}
		return ways.Fail(i.Lost(ctx))
	case Cancel:
		i.Report(describe, true)
		if ways.Cancel != nil {
			return ways.Cancel()
		}
		return ways.Fail(context.Canceled)
	}
	return ways.Proceed()
}

func (w *Ways[R]) discard() {
	if w.Discard != nil {
		w.Discard()
		return
	}
	w.Proceed()
}

type result[T any] struct {
	answer T
	err    error
}

// Call is Execute for a call that returns an answer or an error.
func Call[T any](ctx context.Context, i *Injector, describe func() Operation, do func(context.Context) (T, error)) (T, error) {
	if !i.concerned() {
		return do(ctx)
	}
	r := Execute(ctx, i, describe, Ways[result[T]]{
		Proceed: func() result[T] {
			answer, err := do(ctx)
			i.Report(describe, err != nil)
			return result[T]{answer, err}
		},
		Fail: func(err error) result[T] { return result[T]{err: err} },
	})
	return r.answer, r.err
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
func Deliver(ctx context.Context, i *Injector, describe func() Operation) Delivery {
	times := 1
	return Execute(ctx, i, describe, Ways[Delivery]{
		Proceed: func() Delivery { return Delivery{Times: times} },
		Discard: func() { times++ },
		Fail:    func(err error) Delivery { return Delivery{Last: true, Err: err} },
		Drop:    func() Delivery { return Delivery{} },
		Cancel:  func() Delivery { return Delivery{Last: true} },
	})
}
