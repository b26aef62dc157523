package engine

import (
	"context"
	"strings"
)

// Help is the command that describes commands.
func (r *Run) Help() Command {
	return Command{
		Name:       "help",
		Args:       "[COMMAND]",
		Summary:    "print what the commands do, or what one of them does",
		Details:    `It is meant for a prompt (see break).`,
		Example:    "help watch",
		NoNegation: true,
		Run: func(_ context.Context, args []string) error {
			return Misuse(WriteUsage(&r.Stdout, r.commands, strings.Join(args, "")))
		},
	}
}
