package engine

import (
	"context"
	"fmt"
	"strings"
)

// Help is the verb that describes verbs.
func (r *Run) Help() Verb {
	return Verb{
		Name:       "help",
		Args:       "[COMMAND]",
		Most:       1,
		Summary:    "print what the commands do, or what one of them does",
		Details:    `It is meant for a prompt (see break).`,
		Example:    "help watch",
		NoNegation: true,
		Run: func(_ context.Context, args []string) error {
			if err := WriteUsage(&r.Stdout, r.verbs, strings.Join(args, "")); err != nil {
				return fmt.Errorf("%w: %w", ErrUsage, err)
			}
			return nil
		},
	}
}
