package fault

import "context"

// Held is an operation that waits until somebody lets it go.
type Held struct {
	Operation
	// Rule is why; the zero value if it waits for a turn.
	Rule Rule

	ctx context.Context
}

// Value is that of the context with which At was asked about the operation.
func (h Held) Value(key any) any { return h.ctx.Value(key) }

// Held returns the operations that rules make wait, in the order of the rules and
// then of their arrival, and then those that wait for a turn. Those that go on by
// themselves, when a delay is over or a rule ends, are not among them.
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
