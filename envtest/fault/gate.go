package fault

import (
	"context"
	"fmt"
)

// Gate is where operations wait because of one rule, until they are let go.
type Gate struct{ entry *Entry }

// Waiting returns the operations that wait, in the order of their arrival.
func (g *Gate) Waiting() []Operation {
	g.entry.set.mu.Lock()
	defer g.entry.set.mu.Unlock()
	return g.operations()
}

// operations lists who waits; the set's lock is held.
func (g *Gate) operations() []Operation {
	ops := make([]Operation, len(g.entry.waiting))
	for i, w := range g.entry.waiting {
		ops[i] = w.op
	}
	return ops
}

// Await returns the operations that wait as soon as there are n of them. When
// ctx ends first, the error says which there are.
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

func (g *Gate) look() ([]Operation, <-chan struct{}) {
	g.entry.set.mu.Lock()
	defer g.entry.set.mu.Unlock()
	return g.operations(), g.entry.arrived
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

// ReleaseOnly lets the given operation go, as Waiting returned it, and reports
// whether it was waiting.
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
