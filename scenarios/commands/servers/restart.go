package servers

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/internal/wall"
	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Restart() engine.Command {
	return engine.Command{
		Name:    "restart",
		Args:    "[SERVER] | " + startArgs,
		Summary: "stop the API servers and start others on the same store, or start one again",
		Details: `Without SERVER, the arguments are those of start, and nothing is carried over from the
previous servers, not even rules: add a rule that must be in force from the first moment
of the next servers after "shutdown" and before "start". With SERVER, that server starts
again under the same name and address, after "crash SERVER" or "shutdown SERVER".`,
		Example:   "restart -- --event-ttl=10m\nrestart apiserver-1",
		Unbounded: true,
		Needs:     s.Running,
		Alone:     isAlone,
		Begins:    func(args []string) bool { return !isServer(args) },
		Static: func(flags *pflag.FlagSet, args []string) error {
			if isServer(args) {
				return nil
			}
			return checkStart(flags, args)
		},
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			begin := s.Start().Prepare(flags)
			return func(ctx context.Context, args []string) error {
				if isServer(args) {
					server, err := s.Server(args)
					if err != nil {
						return err
					}
					s.spent.Boots++
					defer wall.Timing(&s.spent.Boot)()
					return server.Restart(ctx)
				}
				if err := s.stop(ctx); err != nil {
					return err
				}
				return begin(ctx, args)
			}
		},
	}
}

// isServer reports whether the arguments of restart name a server.
func isServer(args []string) bool { return len(args) == 1 && !strings.HasPrefix(args[0], "-") }
