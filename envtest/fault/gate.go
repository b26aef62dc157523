package fault

import (
	"context"
	"fmt"
)

// Gate is where operations wait because of one rule, until they are let go.
type Gate struct{ entry *Entry }

// Waiting returns the operations that wait, in the order of their arrival.
func (g *Gate) Waiting() []Operation {
	waiting, _ := g.look()
	return waiting
}

// look returns who waits, and what is closed when another comes.
func (g *Gate) look() (waiting []Operation, arrived <-chan struct{}) {
	g.entry.set.mu.Lock()
	defer g.entry.set.mu.Unlock()
	waiting = make([]Operation, len(g.entry.waiting))
	for i, w := range g.entry.waiting {
		waiting[i] = w.op
	}
	return waiting, g.entry.arrived
}

// Await returns the waiting operations once there are n. If ctx ends first, the
// error says which there are.
func (g *Gate) Await(ctx context.Context, n int) ([]Operation, error) {
	for {
		ops, arrived := g.look()
		if len(ops) >= n {
			return ops, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return ops, fmt.Errorf("gate %q: waiting for %d operations: %w (there are %d: %v)", g.entry.rule, n, context.Cause(ctx), len(ops), ops)
		}
	}
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

// Close makes those wait that come after it. A gate is closed when it is made.
func (g *Gate) Close() {
	g.entry.set.mu.Lock()
	defer g.entry.set.mu.Unlock()
	g.entry.open = false
}

// Remove takes the rule of the gate out of the Set, as Entry.Remove.
func (g *Gate) Remove() { g.entry.Remove() }

// Held is an operation that waits until somebody lets it go.
type Held struct {
	Operation
	// Rule is why; the zero value if it waits for a turn.
	Rule Rule

	ctx context.Context
}

// Value is that of the context with which At was asked about the operation.
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
