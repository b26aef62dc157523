package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Scheduler decides when operations go on. While a Set has one, every operation
// at every point waits for its turn, with rules or without.
//
// Both methods are called from the goroutine of the operation, and must not
// block. To give the same order every time a Scheduler chooses when everybody
// waits, and by nothing but what identifies an operation, such as its Priority.
type Scheduler interface {
	// Arrive is told of an operation that waits, and of how long it takes: it is to
	// go on no sooner than after that. release lets it go on, at any time, from any
	// goroutine, once or more. An operation may arrive again after rules have made
	// it wait.
	Arrive(op Operation, latency time.Duration, release func())
	// Leave is told of an operation that gave up, not of one that Schedule let go on.
	Leave(op Operation)
	// Reseed has another seed decide from now on.
	Reseed(seed uint64)
}

// Schedule replaces the scheduler; nil is none. What waits for a turn goes on.
func (s *Set) Schedule(scheduler Scheduler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.schedule(scheduler)
	}
}

// schedule is Schedule; mu is held.
func (s *Set) schedule(scheduler Scheduler) {
	close(s.unscheduled)
	s.unscheduled = make(chan struct{})
	s.scheduler = scheduler
	s.replace(s.entries)
}

// turn waits until an operation has taken its time and the scheduler lets it go on.
func (s *Set) turn(ctx context.Context, op *Operation, latency time.Duration) error {
	s.mu.Lock()
	scheduler, unscheduled := s.scheduler, s.unscheduled
	if scheduler == nil {
		s.mu.Unlock()
		if latency > 0 {
			s.config.Latency.Take(latency)
		}
		return nil
	}
	released := make(chan struct{})
	w := &waiter{ctx, *op, released}
	s.queue = append(s.queue, w)
	s.mu.Unlock()
	defer s.leave(w)
	scheduler.Arrive(*op, latency, sync.OnceFunc(func() { close(released) }))
	select {
	case <-released:
		return nil
	case <-unscheduled:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-released: // at the same moment
		return nil
	default:
	}
	scheduler.Leave(*op)
	return fmt.Errorf("%s was waiting for its turn: %w", op, context.Cause(ctx))
}

func (s *Set) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(other *waiter) bool { return other == w })
}
