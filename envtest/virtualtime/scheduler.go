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
)

// Order says in which order the operations of a bubble take their turns. Each
// time nothing runs any more, one of those that wait goes on: the one whose
// priority, by the seed and its identity alone, is highest. Operations with the
// same identity go on together.
type Order struct {
	Seed uint64
	// Steps come in this order, whatever their priorities: what a step matches
	// waits until the steps before it have been taken. What no step matches
	// goes by its priority.
	Steps []Step
	// Patience is how long a step may be waited for while others wait behind
	// it, in virtual time. The default is a minute. Then the steps are given
	// up, and Err says which was missing.
	Patience time.Duration
}

const defaultPatience = time.Minute

// pace is how long a turn takes, in virtual time. What two operations set to
// happen after the same while happens one after the other, as it would outside,
// and not at one moment in an order that nobody has decided.
const pace = time.Nanosecond

// Turn is an operation that has gone on.
type Turn struct {
	Number    int // from 1
	Operation fault.Operation
	// Cause is the turn after which the operation came, which is what made it
	// come; 0 if it was time that did.
	Cause int
}

// Scheduler gives operations their turns. It is a fault.Scheduler for one
// bubble. Make it with NewScheduler, and Stop it before the bubble ends.
type Scheduler struct {
	order Order
	told  func(Turn)
	stop  context.CancelFunc
	ended chan struct{}
	look  chan struct{} // has room for one

	mu       sync.Mutex
	waiting  []*waiting
	idlers   []chan struct{} // closed when nobody may go on
	step     int             // how many have been taken
	turns    int             // how many have been given
	given    map[uint64]int  // the turns of each identity
	last     time.Time       // of the last turn
	blocked  time.Time       // since when nobody could go on but for a step; zero if somebody can
	stopped  bool
	orderErr error
}

// waiting is an operation that waits for its turn.
type waiting struct {
	op      fault.Operation
	release func()
	cause   int
	// identity is the hash of what the operation has in common with others of
	// its identity.
	identity uint64
}

// NewScheduler starts to give turns. It must be called in the bubble, and told
// is called with each turn, before the operation goes on; it may be nil.
func NewScheduler(order Order, told func(Turn)) *Scheduler {
	order.Patience = cmp.Or(order.Patience, defaultPatience)
	if told == nil {
		told = func(Turn) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Scheduler{order: order, told: told, stop: stop, ended: make(chan struct{}), look: make(chan struct{}, 1), given: map[uint64]int{}}
	go s.run(ctx)
	return s
}

// Stop lets everybody go on that waits, and whoever comes later.
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
func (s *Scheduler) Arrive(op fault.Operation, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		release()
		return
	}
	identity := op
	identity.Occurrence = 0
	w := &waiting{op: op, release: release, identity: identity.Priority(0)}
	if time.Since(s.last) < pace {
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

// Waiting returns what waits for its turn; in a bubble in which nothing runs
// that is what waits for a step.
func (s *Scheduler) Waiting() []fault.Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	ops := make([]fault.Operation, len(s.waiting))
	for i, w := range s.waiting {
		ops[i] = w.op
	}
	return ops
}

// Err says which step was missing for too long, or has not been taken yet. It is
// nil if all have been taken.
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

// Idle returns when nothing runs and nobody may go on: what still waits waits
// for a step. While a Scheduler runs nobody else may call synctest.Wait.
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
		return context.Cause(ctx)
	}
}

// wake makes the scheduler look again; it never blocks.
func (s *Scheduler) wake() {
	select {
	case s.look <- struct{}{}:
	default:
	}
}

// run gives a turn whenever nothing else runs.
func (s *Scheduler) run(ctx context.Context) {
	defer close(s.ended)
	defer s.releaseAll()
	for ctx.Err() == nil {
		Wait()
		if next := s.next(); len(next) > 0 {
			for _, w := range next {
				w.release()
			}
			time.Sleep(pace)
			continue
		}
		s.await(ctx, s.rest())
	}
}

// rest tells those who wait for it that nobody may go on, and returns how long a
// missing step is waited for, 0 if none is.
func (s *Scheduler) rest() (patience time.Duration) {
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
		s.giveUp()
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
	case <-s.look:
	case <-due:
	case <-ctx.Done():
	}
}

// next takes the operations whose turn it is, none if nobody may go on. They are
// several if they have the same identity: which of them came first, nobody has
// decided.
func (s *Scheduler) next() []*waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best []*waiting
	var bestPriority uint64
	for _, w := range s.waiting {
		step := s.stepOf(w)
		if step > s.step {
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

// priority is decided by the seed, the identity, and how many turns that
// identity has had.
func (s *Scheduler) priority(w *waiting) uint64 {
	op := w.op
	op.Occurrence = s.given[w.identity]
	return op.Priority(s.order.Seed)
}

// give takes operations out of those that wait; mu is held.
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
		s.told(Turn{Number: s.turns, Operation: w.op, Cause: w.cause})
	}
}

// stepOf returns the first step still to be taken that an operation is, -1 if it
// is none.
func (s *Scheduler) stepOf(w *waiting) int {
	for i := s.step; i < len(s.order.Steps); i++ {
		if s.order.Steps[i].matches(&w.op) {
			return i
		}
	}
	return -1
}

// giveUp forgets the steps, so that those go on that have waited for one too
// long; mu is held.
func (s *Scheduler) giveUp() {
	var behind []string
	for _, w := range s.waiting {
		behind = append(behind, w.op.String())
	}
	s.orderErr = fmt.Errorf("%w within %s; behind it waited: %s", s.missing(), s.order.Patience, strings.Join(behind, ", "))
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
