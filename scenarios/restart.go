package scenarios

import (
	"context"

	"github.com/spf13/pflag"
)

func restartCommand() command {
	start := startCommand()
	return command{
		name:      "restart",
		args:      start.args,
		summary:   "stop the API server and start another on the same store",
		details:   `The arguments are those of start; nothing is carried over from the last server.`,
		example:   "restart --hold generic-apiserver-start-informers",
		unbounded: true,
		prepare: func(flags *pflag.FlagSet) func(context.Context, *session, []string) error {
			begin := start.prepare(flags)
			return func(ctx context.Context, s *session, args []string) error {
				if _, err := s.running(); err != nil {
					return err
				}
				if err := s.stop(ctx); err != nil {
					return err
				}
				return begin(ctx, s, args)
			}
		},
	}
}
