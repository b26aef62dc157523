package engine

import (
	"context"
	"strings"
)

// Note is the command that puts a line into the story.
func (r *Run) Note() Command {
	return Command{
		Name:       "note",
		Args:       "TEXT...",
		Summary:    "put a line into the timeline",
		Details:    `The comments and commands of the script are in the timeline anyway.`,
		Example:    "note the leader is gone",
		NoNegation: true,
		Tells:      true,
		Run: func(_ context.Context, args []string) error {
			r.Story.Note(strings.Join(args, " "))
			return nil
		},
	}
}
