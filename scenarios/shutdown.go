package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/nearest"
)

var shutdownCommand = command{
	name:    "shutdown",
	args:    "[--begin] [SERVER]",
	most:    1,
	summary: "stop the API servers, or one of them, gracefully; the store keeps its content",
	details: `It fails if a server has crashed, unless "await crash" has confirmed the crash, or if
any part of a server does not stop. A single server can be started again with "restart
SERVER"; the rules of the script stay.

With --begin it only begins the shutdown, so that the script can observe it; the next
shutdown without --begin waits for the end.`,
	example:   "shutdown\nshutdown apiserver-1\nshutdown --begin\nawait signal ShutdownInitiated",
	unbounded: true,
	onServer:  true,
	prepare: func(flags *pflag.FlagSet) action {
		begin := flags.Bool("begin", false, "")
		return func(ctx context.Context, s *session, args []string) error {
			if len(args) == 0 && !*begin {
				return s.stop(ctx)
			}
			server, err := s.serverOf(args)
			if err != nil {
				return err
			}
			if *begin {
				s.beginStop(server)
				return nil
			}
			defer timing(&s.spent.Shutdown)()
			return server.Stop(ctx)
		}
	},
}

// beginStop stops a server while the script goes on. Whoever stops it again waits for it.
func (s *session) beginStop(server *envtest.Server) {
	ctx := context.WithoutCancel(s.outer)
	ended := make(chan error, 1)
	s.stopping = append(s.stopping, ended)
	go func() { ended <- server.Stop(ctx) }()
}

// endStops waits for the servers that are being stopped.
func (s *session) endStops() error {
	var errs []error
	for _, ended := range s.stopping {
		errs = append(errs, <-ended)
	}
	s.stopping = nil
	return errors.Join(errs...)
}

// stop ends the control plane, and the rules about it.
func (s *session) stop(ctx context.Context) error {
	server := s.server
	defer timing(&s.spent.Shutdown)()
	beside := s.endPrograms(ctx)
	s.server, s.identity = nil, nil
	err := errors.Join(beside, server.Stop(ctx), s.endStops())
	s.serverLog = server.Log()
	s.noteFired(server)
	if crash := server.Err(); crash != nil && !s.excused {
		err = errors.Join(fmt.Errorf("the API server crashed: %w", crash), err)
	}
	return errors.Join(err, s.endRules())
}

// serverOf finds the server that the arguments name, or the only one.
func (s *session) serverOf(args []string) (*envtest.Server, error) {
	if s.server == nil {
		return nil, errNoServer
	}
	servers := s.server.Servers()
	if len(args) == 0 && len(servers) == 1 {
		return servers[0], nil
	}
	var names []string
	for _, server := range servers {
		if len(args) == 1 && server.Name() == args[0] {
			return server, nil
		}
		names = append(names, server.Name())
	}
	if len(args) != 1 {
		return nil, fmt.Errorf("%w: which server? There are %s", errUsage, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("%w: no server is called %q%s; there are %s", errUsage, args[0], nearest.DidYouMean(args[0], names), strings.Join(names, ", "))
}
