package scenarios

import (
	"context"
	"fmt"
)

var heldCommand = command{
	name:     "held",
	summary:  "print the operations that are waiting at a gate or behind a freeze",
	details:  `It prints a line for each, such as "store/put configmaps default/a".`,
	example:  "held\nstdout '^store/put configmaps default/a'",
	onServer: true,
	run: func(_ context.Context, s *session, _ []string) error {
		for _, op := range s.server.Faults().Held() {
			if op.Rule.Kind != "" {
				fmt.Fprintln(&s.out, op.Operation)
			}
		}
		return nil
	},
}
