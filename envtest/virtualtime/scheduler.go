package virtualtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/sim"
)

// Order decides in which order a bubble's operations proceed. Whenever no goroutine
// runs any more, a turn goes to the waiting operation with the highest priority,
// which depends on the seed and its identity alone. Waiting operations that have the same
// identity get their turn together.
type Order struct {
	Seed uint64
	// Latency makes a turn take some microseconds, as work does (see the type Latency).
	Latency bool
	// Steps happen in this order, whatever their priorities: an operation that matches
	// one waits until those before it are taken. All others go by priority.
	Steps []Step
	// Patience is how long, in virtual time, operations may wait for a step; then all
	// steps are dropped, and Err says which was missing. The default is a minute.
	Patience time.Duration
}

const defaultPatience = time.Minute

// A turn takes virtual time: with Order.Latency between minTurn and maxTurn, by the seed, and
// otherwise nextToNothing. If it took none, timers that two operations set for the same
// duration would be due at the same moment, and fire in an order left to chance.
const (
	nextToNothing = time.Nanosecond
	minTurn       = time.Microsecond
	maxTurn       = 10 * time.Microsecond
)

// Turn is an operation that has proceeded.
type Turn struct {
	Number    int // from 1
	Operation fault.Operation
	// Cause is the turn that made the operation arrive; 0 if the passing of time did.
	Cause int
}

// Scheduler gives operations their turns. It is a fault.Scheduler for one
// bubble. Make it with NewScheduler, and Stop it before the bubble ends.
type Scheduler struct {
	order  Order
	onTurn func(Turn)
	stop   context.CancelFunc
	ended  chan struct{}
	wakeup chan struct{} // buffered, so that wake never blocks

	mu       sync.Mutex
	waiting  []*waiting
	idlers   []chan struct{} // closed when no operation may proceed
	step     int             // how many steps have been taken
	turns    int             // how many turns have been given
	given    map[uint64]int  // turns by identity
	last     time.Time       // of the last turn
	blocked  time.Time       // since when operations wait for nothing but a step; else zero
	stopped  bool
	orderErr error
}

// waiting is an operation that waits for its turn.
type waiting struct {
	op       fault.Operation
	due      time.Time // from when on it may proceed
	release  func()
	cause    int
	identity uint64 // hash of the operation without its occurrence
}

// NewScheduler starts to give turns, in the bubble it is called in. onTurn, which
// may be nil, is called with each turn before the operation proceeds.
func NewScheduler(order Order, onTurn func(Turn)) *Scheduler {
	order.Patience = cmp.Or(order.Patience, defaultPatience)
	if onTurn == nil {
		onTurn = func(Turn) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Scheduler{order: order, onTurn: onTurn, stop: stop, ended: make(chan struct{}), wakeup: make(chan struct{}, 1), given: map[uint64]int{}}
	go s.run(ctx)
	return s
}

// Stop releases all operations, waiting and later, and joins the scheduler.
func (s *Scheduler) Stop() {
	s.stop()
	<-s.ended
}

// Stopped reports whether Stop has ended the scheduler.
func (s *Scheduler) Stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// Arrive implements fault.Scheduler.
func (s *Scheduler) Arrive(op fault.Operation, latency time.Duration, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		release()
		return
	}
	identity := op
	identity.Occurrence = 0
	now := time.Now()
	w := &waiting{op: op, due: now.Add(latency), release: release, identity: identity.Priority(0)}
	if now.Equal(s.last) {
		w.cause = s.turns
	}
	s.waiting = append(s.waiting, w)
	s.wake()
}

// Leave implements fault.Scheduler.
func (s *Scheduler) Leave(op fault.Operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiting) bool { return w.op == op })
}

// Err says which step was not in time or is still missing; nil once all were taken.
func (s *Scheduler) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orderErr != nil || s.step == len(s.order.Steps) {
		return s.orderErr
	}
	return s.missing()
}

func (s *Scheduler) missing() error {
	return fmt.Errorf("step %d of %d did not come: %s", s.step+1, len(s.order.Steps), s.order.Steps[s.step])
}

// Idle returns when no goroutine runs and no operation may proceed: those left wait
// for a step. While a Scheduler runs, no other goroutine of the bubble may call Wait.
func (s *Scheduler) Idle(ctx context.Context) error {
	idle := make(chan struct{})
	s.mu.Lock()
	s.idlers = append(s.idlers, idle)
	s.mu.Unlock()
	s.wake()
	select {
	case <-idle:
		return nil
	case <-s.ended:
		return errors.New("the scheduler has stopped")
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("%d operations wait for their turns: %w", len(s.waiting), context.Cause(ctx))
	}
}

// wake makes the scheduler look again; it never blocks.
func (s *Scheduler) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// run gives a turn whenever nothing else runs.
func (s *Scheduler) run(ctx context.Context) {
	defer close(s.ended)
	defer s.releaseAll()
	for ctx.Err() == nil {
		heldUp := s.rest(ctx)
		if next := s.next(); len(next) > 0 {
			for _, w := range next {
				w.release()
			}
			if !heldUp {
				s.takeTime(ctx)
			}
			continue
		}
		due := s.firstDue()
		if due == 0 {
			due = s.markIdle()
		}
		s.await(ctx, due)
	}
}

// rest returns when nothing else runs. In sim mode without latency (seesMutexes) it also
// returns, with true, when all that is left waits for mutexes: the goroutine that holds one may
// be waiting for a turn, which needs no time to pass. An ordinary build cannot see mutexes.
func (s *Scheduler) rest(ctx context.Context) (heldUp bool) {
	if s.seesMutexes() {
		if heldUp, err := restOrHeldUp(ctx); heldUp || err != nil {
			return true
		}
	}
	Wait()
	return false
}

// takeTime sleeps for as long as the last turn takes. If that turn has left goroutines that
// wait for a mutex, no virtual time can pass: then takeTime returns at once, so that another
// turn may lead to the mutex being unlocked.
func (s *Scheduler) takeTime(ctx context.Context) {
	if s.seesMutexes() && s.rest(ctx) {
		return
	}
	time.Sleep(s.turnTime())
}

// seesMutexes reports whether turns go on while goroutines wait for mutexes.
func (s *Scheduler) seesMutexes() bool { return sim.Enabled() && !s.order.Latency }

// Reseed implements fault.Scheduler.
func (s *Scheduler) Reseed(seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order.Seed = seed
}

// turnTime is how long the last turn takes.
func (s *Scheduler) turnTime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.order.Latency {
		return nextToNothing
	}
	number := fault.Operation{Occurrence: s.turns}
	return minTurn + time.Duration(number.Priority(s.order.Seed)%uint64(maxTurn-minTurn))
}

// firstDue is the time until the next waiting operation becomes due; 0 if all of them are due.
func (s *Scheduler) firstDue() (first time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiting {
		if left := time.Until(w.due); left > 0 && (first == 0 || left < first) {
			first = left
		}
	}
	return first
}

// markIdle wakes the callers of Idle and returns how much longer to wait for a
// missing step, 0 if nothing waits for one.
func (s *Scheduler) markIdle() (patience time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, idle := range s.idlers {
		close(idle)
	}
	s.idlers = nil
	switch {
	case len(s.waiting) == 0:
		s.blocked = time.Time{}
		return 0
	case s.blocked.IsZero():
		s.blocked = time.Now()
	case time.Since(s.blocked) >= s.order.Patience:
		s.dropSteps()
		s.wake()
		return 0
	}
	return time.Until(s.blocked.Add(s.order.Patience))
}

// await returns when there may be something to do.
func (s *Scheduler) await(ctx context.Context, patience time.Duration) {
	var due <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-s.wakeup:
	case <-due:
	case <-ctx.Done():
	}
}

// next removes and returns the operations whose turn it is, if any may proceed:
// several if they share an identity, as nothing decides which came first.
func (s *Scheduler) next() []*waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best []*waiting
	var bestPriority uint64
	now := time.Now()
	for _, w := range s.waiting {
		step := s.stepOf(w)
		if step > s.step || w.due.After(now) {
			continue
		}
		p := s.priority(w)
		switch {
		case len(best) == 0 || p > bestPriority:
			best, bestPriority = []*waiting{w}, p
		case p == bestPriority && step < 0 && s.stepOf(best[0]) < 0:
			best = append(best, w)
		}
	}
	if len(best) > 0 {
		s.give(best)
	}
	return best
}

// priority depends on the seed, the identity, and how many turns that has had.
func (s *Scheduler) priority(w *waiting) uint64 {
	op := w.op
	op.Occurrence = s.given[w.identity]
	return op.Priority(s.order.Seed)
}

// give gives waiting operations their turn; mu is held.
func (s *Scheduler) give(turn []*waiting) {
	s.blocked = time.Time{}
	if s.stepOf(turn[0]) == s.step {
		s.step++
	}
	s.given[turn[0].identity]++
	s.last = time.Now()
	slices.SortFunc(turn, func(a, b *waiting) int { return cmp.Compare(a.op.Occurrence, b.op.Occurrence) })
	for _, w := range turn {
		s.waiting = slices.DeleteFunc(s.waiting, func(other *waiting) bool { return other == w })
		s.turns++
		s.onTurn(Turn{Number: s.turns, Operation: w.op, Cause: w.cause})
	}
}

// stepOf returns the index of the first remaining step that matches, or -1.
func (s *Scheduler) stepOf(w *waiting) int {
	for i := s.step; i < len(s.order.Steps); i++ {
		if s.order.Steps[i].matches(&w.op) {
			return i
		}
	}
	return -1
}

// dropSteps forgets the steps, so that those behind one may proceed; mu is held.
func (s *Scheduler) dropSteps() {
	var behind []string
	for _, w := range s.waiting {
		behind = append(behind, w.op.String())
	}
	s.orderErr = fmt.Errorf("%w within %s; waiting for it: %s", s.missing(), s.order.Patience, strings.Join(behind, ", "))
	s.order.Steps, s.step = nil, 0
}

func (s *Scheduler) releaseAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiting {
		w.release()
	}
	s.waiting, s.stopped = nil, true
}
