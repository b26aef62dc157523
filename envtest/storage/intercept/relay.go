package intercept

import (
	"context"
	"time"

	"snowglobe.test/envtest/fault"
)

// Relay passes on what comes on a channel, in its order. What waits because of
// a rule keeps back what comes after it; since each is known to have been here
// for a while, a delay is a lag and not a brake.
type Relay[T any] struct {
	In  <-chan T
	Out chan<- T
	// Split takes apart, when it comes, what is to be asked about in parts. Nil
	// takes nothing apart.
	Split func(T) []T
	// Concerns reports whether there is something to ask about one of the parts.
	// It is told each of them, in order, when nothing is before it any more.
	Concerns func(T) bool
	// Ask returns what goes on instead of something that came at a time, and
	// whether anything may follow.
	Ask func(ctx context.Context, what T, arrived time.Time) (instead []T, more bool)

	waiting queue[arrival[T]]
	ready   []T            // may go on now
	asking  bool           // about what came before all that waits
	answers chan answer[T] // the one that is being asked for
}

// arrival is something that came.
type arrival[T any] struct {
	what T
	at   time.Time
}

// Instead is what Ask returns of a decision about something: again makes another
// one like it.
func Instead[T any](what T, d fault.Decision, err error, again func(T) T) (instead []T, more bool) {
	switch {
	case err != nil, d.Kind == fault.Cancel:
		return nil, false
	case d.Kind == fault.Drop:
		return nil, true
	case d.Kind == fault.Duplicate:
		return []T{what, again(what)}, true
	}
	return []T{what}, true
}

type answer[T any] struct {
	instead []T
	more    bool
}

// Run closes Out when In is closed and everything has gone on, when Ask says
// that nothing may follow, or when ctx ends. Like a watch of etcd's client it
// keeps any number that wait; it takes no more while the receiver is slow.
func (r *Relay[T]) Run(ctx context.Context) {
	defer close(r.Out)
	r.answers = make(chan answer[T], 1)
	for in := r.In; ; {
		r.next(ctx)
		from, to, first := in, r.Out, *new(T)
		if len(r.ready) > 0 {
			from, first = nil, r.ready[0]
		} else {
			to = nil
		}
		if from == nil && to == nil && !r.asking {
			return
		}
		select {
		case what, ok := <-from:
			if !ok {
				in = nil
				continue
			}
			r.arrive(what)
		case to <- first:
			r.ready = r.ready[1:]
		case a := <-r.answers:
			if r.asking, r.ready = false, a.instead; !a.more {
				return
			}
		case <-ctx.Done():
			if r.asking {
				<-r.answers
			}
			return
		}
	}
}

// arrive puts something at the end.
func (r *Relay[T]) arrive(what T) {
	now := time.Now()
	if r.Split == nil {
		r.waiting.add(arrival[T]{what, now})
		return
	}
	for _, part := range r.Split(what) {
		r.waiting.add(arrival[T]{part, now})
	}
}

// next sees to the first that waits, when nothing is before it.
func (r *Relay[T]) next(ctx context.Context) {
	first, ok := r.waiting.first()
	if !ok || r.asking || len(r.ready) > 0 {
		return
	}
	r.waiting.drop()
	if !r.Concerns(first.what) {
		r.ready = append(r.ready[:0], first.what)
		return
	}
	r.asking = true
	go func() {
		instead, more := r.Ask(ctx, first.what, first.at)
		r.answers <- answer[T]{instead, more}
	}()
}
