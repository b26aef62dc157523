package servers

import (
	"context"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/wall"
	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Shutdown() engine.Command {
	return engine.Command{
		Name:    "shutdown",
		Args:    "[--begin] [SERVER]",
		Summary: "stop the API servers, or one of them, gracefully; the store keeps its content",
		Details: `It fails if a server has crashed, unless "await crash" has confirmed the crash, or if
any part of a server does not stop. A single server can be started again with "restart
SERVER"; the rules of the script stay.

With --begin it only begins the shutdown, so that the script can observe it; the next
shutdown without --begin waits for the end.`,
		Example:   "shutdown\nshutdown apiserver-1\nshutdown --begin\nawait signal ShutdownInitiated",
		Unbounded: true,
		Needs:     s.Running,
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			begin := flags.Bool("begin", false, "")
			return func(ctx context.Context, args []string) error {
				if len(args) == 0 && !*begin {
					return s.stop(ctx)
				}
				server, err := s.Server(args)
				if err != nil {
					return err
				}
				if *begin {
					s.beginStop(server)
					return nil
				}
				defer wall.Timing(&s.spent.Shutdown)()
				return server.Stop(ctx)
			}
		},
	}
}

// beginStop stops a server while the script goes on. Whoever stops it again waits for it.
func (s *Servers) beginStop(server *envtest.Server) {
	ctx := s.run.Background()
	ended := make(chan error, 1)
	s.stopping = append(s.stopping, ended)
	go func() { ended <- server.Stop(ctx) }()
}
