package scenarios

import (
	"context"

	"github.com/spf13/pflag"
)

var restartCommand = command{
	name:      "restart",
	args:      startCommand.args,
	most:      anyNumber,
	summary:   "stop the API server and start another on the same store",
	details:   `The arguments are those of start; nothing is carried over from the last server.`,
	example:   "restart --hold generic-apiserver-start-informers",
	unbounded: true,
	onServer:  true,
	prepare: func(flags *pflag.FlagSet) action {
		begin := startCommand.prepare(flags)
		return func(ctx context.Context, s *session, args []string) error {
			if err := s.stop(ctx); err != nil {
				return err
			}
			return begin(ctx, s, args)
		}
	},
}
