package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/nearest"
)

// Gate is where operations wait because of one rule, until they are let go.
type Gate struct{ entry *Entry }

// Waiting returns the operations that wait, in the order of their arrival.
func (g *Gate) Waiting() []Operation {
	g.entry.set.mu.Lock()
	defer g.entry.set.mu.Unlock()
	waiting := make([]Operation, len(g.entry.waiting))
	for i, w := range g.entry.waiting {
		waiting[i] = w.op
	}
	return waiting
}

// Await returns the waiting operations once there are n. If ctx ends first, the
// error says which there are.
func (g *Gate) Await(ctx context.Context, n int) ([]Operation, error) {
	var ops []Operation
	err := g.entry.arrived.Await(ctx, func() bool {
		ops = g.Waiting()
		return len(ops) >= n
	})
	if err != nil {
		return ops, fmt.Errorf("gate %q: waiting for %d operations: %w (there are %d: %v)", g.entry.rule, n, err, len(ops), ops)
	}
	return ops, nil
}

// Release lets the first n go, or as many as there are, and returns them.
func (g *Gate) Release(n int) []Operation {
	g.entry.set.mu.Lock()
	defer g.entry.set.mu.Unlock()
	return g.entry.release(func(*waiter) bool {
		n--
		return n >= 0
	})
}

// ReleaseOnly lets go an operation from Waiting, and reports whether it still waited.
func (g *Gate) ReleaseOnly(op Operation) bool {
	g.entry.set.mu.Lock()
	defer g.entry.set.mu.Unlock()
	return len(g.entry.release(func(w *waiter) bool { return w.op == op })) > 0
}

// Open lets all that wait go, and all that come.
func (g *Gate) Open() {
	g.entry.set.mu.Lock()
	defer g.entry.set.mu.Unlock()
	g.entry.open = true
	g.entry.release(func(*waiter) bool { return true })
}

// Close makes operations wait again that arrive from now on. A gate is closed when it is made.
func (g *Gate) Close() {
	g.entry.set.mu.Lock()
	defer g.entry.set.mu.Unlock()
	g.entry.open = false
}

// Remove takes the rule of the gate out of the Set, as Entry.Remove.
func (g *Gate) Remove() { g.entry.Remove() }

// Release lets the waiting operations go that match, such as "hook/crd-informer-synced",
// whatever rules make them wait, and opens the gate of the rule "hold MATCH". If no waiting
// operation matches, the error says where something is held.
func (s *Set) Release(match string) error {
	wanted, err := ParseMatch(match, nil)
	if err != nil {
		return err
	}
	released := false
	s.mu.Lock()
	for _, e := range s.entries {
		if !e.rule.Kind.waits() {
			continue
		}
		released = len(e.release(func(w *waiter) bool { return wanted.Covers(&w.op) })) > 0 || released
		e.open = e.open || e.rule.Match == wanted
	}
	s.mu.Unlock()
	if released {
		return nil
	}
	points := s.HeldPoints()
	return fmt.Errorf("nothing is held at %s; held are: %s%s", wanted, cmp.Or(strings.Join(points, ", "), "none"), nearest.DidYouMean(wanted.Point, points))
}

// HeldPoints are the points at which rules hold operations, each once.
func (s *Set) HeldPoints() []string {
	var points []string
	for _, held := range s.Held() {
		if held.Rule.Kind != Pass && !slices.Contains(points, held.Point) {
			points = append(points, held.Point)
		}
	}
	return points
}

// HeldHooks returns the post-start hooks of a server that wait because of hold rules, sorted.
func (s *Set) HeldHooks(server string) []string {
	var hooks []string
	for _, entry := range s.Rules() {
		if entry.Rule().Kind != Hold {
			continue
		}
		for _, op := range entry.Gate().Waiting() {
			if name, ok := strings.CutPrefix(op.Point, HookPoint); ok && op.Server == server && op.Verb == string(trace.PostStart) {
				hooks = append(hooks, name)
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(hooks)))
}

// Held is an operation that waits until the test lets it go.
type Held struct {
	Operation
	// Rule is the rule that holds it; the zero value if it waits for a turn.
	Rule Rule

	ctx context.Context
}

// Value returns the value for key of the context with which At was called for the operation.
func (h Held) Value(key any) any { return h.ctx.Value(key) }

// Held returns the operations that rules hold, by rule and arrival, then those that
// wait for a turn. It leaves out those that go on when a delay is over or a rule ends.
func (s *Set) Held() []Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []Held
	for _, e := range s.entries {
		if e.rule.Kind == Delay || e.rule.end() > 0 {
			continue
		}
		for _, w := range e.waiting {
			held = append(held, Held{w.op, e.rule, w.ctx})
		}
	}
	for _, w := range s.queue {
		held = append(held, Held{Operation: w.op, ctx: w.ctx})
	}
	return held
}
