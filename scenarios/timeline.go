package scenarios

import (
	"context"

	"github.com/spf13/pflag"
)

var timelineCommand = command{
	name:    "timeline",
	args:    "[--all]",
	summary: "print what has happened so far",
	details: `It prints the script's own story; with --all, everything except the server's
routine requests to itself.`,
	example:    "timeline",
	noNegation: true,
	prepare: func(flags *pflag.FlagSet) action {
		all := flags.Bool("all", false, "")
		return func(_ context.Context, s *session, args []string) error {
			return WriteStory(&s.out, s.story.snapshot(), TextOptions{Verbose: *all})
		}
	},
}
