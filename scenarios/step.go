package scenarios

import (
	"context"
	"fmt"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/nearest"
)

var stepCommand = command{
	name:  "step",
	args:  "POINT [KEY=VALUE]...",
	least: 1, most: anyNumber,
	summary: "let one held operation go on, and keep holding the others",
	details: `It prints the operation, which is the one that has waited longest at that point. The rules
stay: operations that arrive later wait too. It does not wait for the operation to finish.`,
	example:  "hold store/put resource=configmaps\nawait held store/put\nstep store/put\nstdout '^store/put configmaps default/a'",
	onServer: true,
	run: func(_ context.Context, s *session, args []string) error {
		op, err := s.step(ruleText(args))
		if err != nil {
			return err
		}
		fmt.Fprintln(&s.out, op)
		return nil
	},
}

// step lets the first operation go that a gate holds and that matches.
func (s *session) step(text string) (fault.Operation, error) {
	match, err := fault.ParseMatch(text, nil)
	if err != nil {
		return fault.Operation{}, fmt.Errorf("%w: %q: %w", errUsage, text, err)
	}
	for _, entry := range s.server.Faults().Rules() {
		gate := entry.Gate()
		if gate == nil {
			continue
		}
		for _, op := range gate.Waiting() {
			if match.Covers(&op) && gate.ReleaseOnly(op) {
				return op, nil
			}
		}
	}
	held := s.heldPoints()
	return fault.Operation{}, fmt.Errorf("nothing is held at %s; held are: %s%s", match, orNone(held), nearest.DidYouMean(match.Point, held))
}
