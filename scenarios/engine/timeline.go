package engine

import (
	"context"

	"github.com/spf13/pflag"

	"snowglobe.test/scenarios/story"
)

// Timeline is the command that prints the story.
func (r *Run) Timeline() Command {
	return Command{
		Name:    "timeline",
		Args:    "[--all]",
		Summary: "print what has happened so far",
		Details: `It prints the script's own story; with --all, everything except the server's
routine requests to itself.`,
		Example:    "timeline",
		NoNegation: true,
		Prepare: func(flags *pflag.FlagSet) Action {
			all := flags.Bool("all", false, "")
			return func(_ context.Context, args []string) error {
				return story.Write(&r.Stdout, r.Story.Records(), story.TextOptions{Verbose: *all})
			}
		},
	}
}
