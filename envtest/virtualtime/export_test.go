package virtualtime

import "snowglobe.test/envtest/fault"

// Waiting returns the operations that wait for a turn. In an idle bubble all of
// them wait for a step.
func (s *Scheduler) Waiting() []fault.Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	ops := make([]fault.Operation, len(s.waiting))
	for i, w := range s.waiting {
		ops[i] = w.op
	}
	return ops
}

// Runs is runs.
func (g Goroutine) Runs() bool { return g.runs() }
