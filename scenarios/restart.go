package scenarios

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
)

var restartCommand = command{
	name:    "restart",
	args:    "[SERVER] | " + startCommand.args,
	most:    anyNumber,
	summary: "stop the API servers and start others on the same store, or start one again",
	details: `Without SERVER, the arguments are those of start, and nothing is carried over from the
previous servers, not even rules: add a rule that must be in force from the first moment
of the next servers after "shutdown" and before "start". With SERVER, that server starts
again under the same name and address, after "crash SERVER" or "shutdown SERVER".`,
	example:   "restart -- --event-ttl=10m\nrestart apiserver-1",
	unbounded: true,
	onServer:  true,
	prepare: func(flags *pflag.FlagSet) action {
		begin := startCommand.prepare(flags)
		return func(ctx context.Context, s *session, args []string) error {
			if len(args) == 1 && !strings.HasPrefix(args[0], "-") {
				server, err := s.serverOf(args)
				if err != nil {
					return err
				}
				s.spent.Boots++
				defer timing(&s.spent.Boot)()
				return server.Restart(ctx)
			}
			if err := s.stop(ctx); err != nil {
				return err
			}
			return begin(ctx, s, args)
		}
	},
}
