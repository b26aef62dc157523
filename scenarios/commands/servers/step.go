package servers

import (
	"context"
	"fmt"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Step() engine.Command {
	return engine.Command{
		Name:    "step",
		Args:    "POINT [KEY=VALUE]...",
		Summary: "let one held operation go on, and keep holding the others",
		Details: `It prints the operation, which is the one that has waited longest at that point. The rules
stay: operations that arrive later wait too. It does not wait for the operation to finish.`,
		Example: "hold store/put resource=configmaps\nawait held store/put\nstep store/put\nstdout '^store/put configmaps default/a'",
		Needs:   s.Running,
		Static:  checkMatch,
		Run: func(_ context.Context, args []string) error {
			op, err := s.step(ruleText(args))
			if err != nil {
				return err
			}
			fmt.Fprintln(&s.run.Stdout, op)
			return nil
		},
	}
}

// step lets the first operation go that a gate holds and that matches.
func (s *Servers) step(text string) (fault.Operation, error) {
	match, _ := readMatch(text)
	for _, entry := range s.plane.Faults().Rules() {
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
	held := s.plane.Faults().HeldPoints()
	return fault.Operation{}, fmt.Errorf("nothing is held at %s; held are: %s%s", match, orNone(held), nearest.DidYouMean(match.Point, held))
}
