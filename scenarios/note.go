package scenarios

import (
	"context"
	"strings"
)

var noteCommand = command{
	name:  "note",
	args:  "TEXT...",
	least: 1, most: anyNumber,
	summary:    "put a line into the timeline",
	details:    `The comments and commands of the script are in the timeline anyway.`,
	example:    "note the leader is gone",
	noNegation: true,
	run: func(_ context.Context, s *session, args []string) error {
		s.story.addLine(noteLine, strings.Join(args, " "))
		return nil
	},
}
