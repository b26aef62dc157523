package scenarios

import (
	"context"
	"fmt"
)

var rulesCommand = command{
	name:    "rules",
	summary: "print the rules that are in force, and how often each has fired",
	details: `It prints a line for each, such as "2 fail store/put with=unavailable". Rules that
are waiting for the next start have fired 0 times.`,
	example: "rules\nstdout '^2 fail store/put'",
	run: func(_ context.Context, s *session, _ []string) error {
		if s.server == nil {
			for _, rule := range s.rules {
				fmt.Fprintln(&s.out, 0, rule.Rule)
			}
			return nil
		}
		for _, entry := range s.server.Faults().Rules() {
			fmt.Fprintln(&s.out, entry.Fired(), entry.Rule())
		}
		return nil
	},
}
