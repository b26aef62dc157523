package fault

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// turns is a scheduler that lets those that wait go one by one, each time
// everybody waits.
type turns struct {
	mu      sync.Mutex
	waiting []turn
	order   []string
	left    int
	choose  func(a, b turn) int
}

type turn struct {
	op      Operation
	release func()
}

func (s *turns) Arrive(op Operation, _ time.Duration, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, turn{op, release})
}

func (*turns) Reseed(uint64) {}

func (s *turns) Leave(op Operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(t turn) bool { return t.op == op })
	s.left++
}

// run gives turns until no operation waits any more. It does nothing of its own at
// the same time as others.
func (s *turns) run() {
	for {
		synctest.Wait()
		s.mu.Lock()
		if len(s.waiting) == 0 {
			s.mu.Unlock()
			return
		}
		next := s.waiting[0]
		if s.choose != nil {
			next = slices.MinFunc(s.waiting, s.choose)
		}
		s.waiting = slices.DeleteFunc(s.waiting, func(t turn) bool { return t.op == next.op })
		s.order = append(s.order, fmt.Sprintf("%s#%d", next.op, next.op.Occurrence))
		s.mu.Unlock()
		next.release()
	}
}

// byPriority chooses by seed, identity and occurrence alone.
func byPriority(seed uint64) func(a, b turn) int {
	return func(a, b turn) int { return cmp.Compare(b.op.Priority(seed), a.op.Priority(seed)) }
}

// interleaving runs five clients that make four writes each, in a bubble, with a
// scheduler, and returns the order in which they went on. Which client starts
// first is left to chance.
func interleaving(t *testing.T, choose func(a, b turn) int, rules ...string) (order []string) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, rules...)
		scheduler := &turns{choose: choose}
		s.Schedule(scheduler)
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, client := range rand.Perm(5) {
			all.Go(func() {
				for range 4 {
					op := put
					op.Caller = fmt.Sprint("client-", client)
					d, decided := at(t, s, op), 0
					if d.op != nil {
						decided = d.op.Occurrence
					}
					mu.Lock()
					order = append(order, fmt.Sprintf("%s#%d %s", op.Caller, decided, d.Kind))
					mu.Unlock()
				}
			})
			synctest.Wait() // so that the order of arrival is really another
		}
		for range 60 { // delays end in between
			scheduler.run()
			time.Sleep(time.Second)
		}
		all.Wait()
	})
	return order
}

// The order is the seed's, whoever comes first. With a scheduler that goes by
// arrival, as a mutation, it is not.
func TestSchedulerDecidesTheOrder(t *testing.T) {
	want := interleaving(t, byPriority(1))
	require.Len(t, want, 20)
	for range 10 {
		assert.Equal(t, want, interleaving(t, byPriority(1)))
	}
	assert.NotEqual(t, want, interleaving(t, byPriority(2)), "the seed does not matter")

	orders := map[string]bool{}
	for range 10 {
		orders[fmt.Sprint(interleaving(t, nil))] = true
	}
	assert.Greater(t, len(orders), 1, "this test can't tell an order by arrival from one by priority")
}

// With rules it is the same: what a rule counts follows the order of turns, and
// those that a delay lets go at the same moment take turns again.
func TestSchedulerWithRules(t *testing.T) {
	rules := []string{"delay store/put nth=1..5 by=3s", "drop store/put every=3", "cancel store/put probability=0.5"}
	want := interleaving(t, byPriority(1), rules...)
	assert.Contains(t, fmt.Sprint(want), "drop")
	for range 10 {
		assert.Equal(t, want, interleaving(t, byPriority(1), rules...))
	}
	orders := map[string]bool{}
	for range 10 {
		orders[fmt.Sprint(interleaving(t, nil, rules...))] = true
	}
	assert.Greater(t, len(orders), 1, "this test can't tell an order by arrival from one by priority")
}

func TestSchedulerLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{})
		scheduler := &turns{}
		s.Schedule(scheduler)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.At(ctx, func() Operation { return put })
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "was waiting for its turn")
		assert.Equal(t, 1, scheduler.left)
		assert.Empty(t, scheduler.waiting)
	})
}

// What waits for a turn goes on when the scheduler is replaced, and at Close.
func TestSchedulerReplaced(t *testing.T) {
	for what, end := range map[string]func(*Set){
		"none": func(s *Set) { s.Schedule(nil) }, "another": func(s *Set) { s.Schedule(&turns{}) }, "close": (*Set).Close,
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := setOf(t, Config{})
				first := &turns{}
				s.Schedule(first)
				c := newCrowd(s)
				c.comes(t, "a", "b")
				assert.Empty(t, c.gone())
				end(s)
				assert.ElementsMatch(t, []string{"a", "b"}, c.gone())
				assert.Zero(t, first.left)
				for _, w := range first.waiting {
					w.release() // too late, and harmless
					w.release()
				}
			})
		})
	}
}
