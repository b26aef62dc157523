package scenarios

import (
	"context"
	"strings"
)

func noteCommand() command {
	return command{
		name:       "note",
		args:       "TEXT...",
		summary:    "put a line into the timeline",
		details:    `The comments and commands of the script are in the timeline anyway.`,
		example:    "note the leader is gone",
		noNegation: true,
		prepare: plain(func(_ context.Context, s *session, args []string) error {
			if len(args) == 0 {
				return errUsage
			}
			s.story.addLine(noteLine, strings.Join(args, " "))
			return nil
		}),
	}
}
