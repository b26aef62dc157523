package scenarios

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
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

var timelineCommand = command{
	name:    "timeline",
	args:    "[--all]",
	summary: "print what has happened so far",
	details: `It prints the script's own story; with --all everything but the routine
requests of the server to itself.`,
	example:    "timeline",
	noNegation: true,
	prepare: func(flags *pflag.FlagSet) action {
		all := flags.Bool("all", false, "")
		return func(_ context.Context, s *session, args []string) error {
			return WriteStory(s.ts.Stdout(), s.story.snapshot(), TextOptions{Verbose: *all})
		}
	},
}
