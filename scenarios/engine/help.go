package engine

import (
	"context"
	"fmt"
	"strings"
)

// Help is the command that describes commands.
func (r *Run) Help() Command {
	return Command{
		Name:       "help",
		Args:       "[COMMAND]",
		Most:       1,
		Summary:    "print what the commands do, or what one of them does",
		Details:    `It is meant for a prompt (see break).`,
		Example:    "help watch",
		NoNegation: true,
		Run: func(_ context.Context, args []string) error {
			if err := WriteUsage(&r.Stdout, r.commands, strings.Join(args, "")); err != nil {
				return fmt.Errorf("%w: %w", ErrUsage, err)
			}
			return nil
		},
	}
}
