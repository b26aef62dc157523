package scenarios

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
)

var hooksCommand = command{
	name:    "hooks",
	args:    "[--held]",
	summary: "print the names of the post-start hooks",
	details: `With --held it prints only held hooks; otherwise held hooks have "held" after
their names.`,
	example:  "hooks --held\n! stdout .",
	onServer: true,
	prepare: func(flags *pflag.FlagSet) action {
		onlyHeld := flags.Bool("held", false, "")
		return func(_ context.Context, s *session, args []string) error {
			hooks, held := apiServer(s.server).Hooks()
			for _, hook := range hooks {
				switch isHeld := slices.Contains(held, hook); {
				case isHeld && !*onlyHeld:
					fmt.Fprintln(&s.out, hook, "held")
				case isHeld || !*onlyHeld:
					fmt.Fprintln(&s.out, hook)
				}
			}
			return nil
		}
	},
}
