package scenarios

import (
	"context"
	"strings"
)

var orderCommand = command{
	name:    "order",
	args:    "[FILE]",
	most:    1,
	summary: "give operations their turns in a given order from now on, in virtual time",
	details: `FILE lists the operations that have a turn, one a line, each a match of a rule, as in
"store/put resource=configmaps name=default/a"; " #2" after it means the second such
operation, and # at the beginning of a line is a comment. All others go by the seed.
Without FILE the seed decides alone. Before a start it is in force from the first
operation of that start.`,
	example:    "order races.txt",
	noNegation: true,
	run: func(ctx context.Context, s *session, args []string) error {
		var steps []string
		if len(args) == 1 {
			for line := range strings.Lines(s.ts.ReadFile(args[0])) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
					steps = append(steps, line)
				}
			}
		}
		if s.server == nil {
			s.steps = steps
			return nil
		}
		_, err := s.server.Schedule(ctx, steps...)
		return err
	},
}
