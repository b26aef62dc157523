package servers

import (
	"context"
	"fmt"

	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Held() engine.Command {
	return engine.Command{
		Name:    "held",
		Summary: "print the operations that are waiting at a gate or behind a freeze",
		Details: `It prints a line for each, such as "store/put configmaps default/a".`,
		Example: "held\nstdout '^store/put configmaps default/a'",
		Needs:   s.Running,
		Run: func(_ context.Context, _ []string) error {
			for _, op := range s.plane.Faults().Held() {
				if op.Rule.Kind != "" {
					fmt.Fprintln(&s.run.Stdout, op.Operation)
				}
			}
			return nil
		},
	}
}
