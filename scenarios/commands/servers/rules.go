package servers

import (
	"context"
	"fmt"

	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Rules() engine.Command {
	return engine.Command{
		Name:    "rules",
		Summary: "print the rules that are in force, and how often each has fired",
		Details: `It prints a line for each, such as "2 fail store/put with=unavailable". Rules that
are waiting for the next start have fired 0 times.`,
		Example: "rules\nstdout '^2 fail store/put'",
		Run: func(_ context.Context, _ []string) error {
			if s.plane == nil {
				for _, rule := range s.rules {
					fmt.Fprintln(&s.run.Stdout, 0, rule.Rule)
				}
				return nil
			}
			for _, entry := range s.plane.Faults().Rules() {
				fmt.Fprintln(&s.run.Stdout, entry.Fired(), entry.Rule())
			}
			return nil
		},
	}
}
