package scenarios

import (
	"context"
	"fmt"
	"strings"
)

var helpCommand = command{
	name:       "help",
	args:       "[COMMAND]",
	most:       1,
	summary:    "print what the commands do, or what one of them does",
	details:    `It is meant for a prompt (see break).`,
	example:    "help watch",
	noNegation: true,
	run: func(_ context.Context, s *session, args []string) error {
		if err := writeUsage(&s.out, s.verbs, strings.Join(args, "")); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		return nil
	},
}
