package scenarios

import (
	"context"
	"strings"
)

var orderCommand = command{
	name:    "order",
	args:    "[FILE]",
	most:    1,
	summary: "give operations their turns in a given order from now on (in virtual time)",
	details: `FILE lists the operations that get a turn, one per line, each written as a rule's match,
as in "store/put resource=configmaps name=default/a"; " #2" after it means the second
such operation, and # at the beginning of a line starts a comment. The seed orders all
others, and everything if there is no FILE. If given before a start, the order is in
force from the first operation of that start.`,
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
