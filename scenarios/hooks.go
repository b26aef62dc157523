package scenarios

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
)

func hooksCommand() command {
	return command{
		name:    "hooks",
		args:    "[--held]",
		summary: "print the names of the post-start hooks",
		details: `With --held it prints only held hooks; otherwise held hooks have "held" after
their name.`,
		example: "hooks --held\n! stdout .",
		prepare: func(flags *pflag.FlagSet) func(context.Context, *session, []string) error {
			onlyHeld := flags.Bool("held", false, "")
			return func(_ context.Context, s *session, args []string) error {
				if len(args) > 0 {
					return errUsage
				}
				server, err := s.running()
				if err != nil {
					return err
				}
				hooks, held := apiServer(server).Hooks()
				for _, hook := range hooks {
					switch isHeld := slices.Contains(held, hook); {
					case isHeld && !*onlyHeld:
						fmt.Fprintln(s.ts.Stdout(), hook, "held")
					case isHeld || !*onlyHeld:
						fmt.Fprintln(s.ts.Stdout(), hook)
					}
				}
				return nil
			}
		},
	}
}
