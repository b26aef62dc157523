package scenarios

import (
	"context"
	"fmt"
	"strings"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/nearest"
)

// anyPath is the path of ControlPlane.Config: to the first server that accepts.
const anyPath = "client-0"

var viaCommand = command{
	name:  "via",
	args:  "CLIENT | SERVER",
	least: 1, most: 1,
	summary: "choose the path of the requests that follow",
	details: `client-0 is the path after a start: as if behind a load balancer, it leads to the first
server that accepts requests, until that server is gone. client-1, client-2, and so on are
more paths like it, which rules can cut one by one. SERVER is a path to that server only;
it has a client number too. The user stays the same.`,
	example:    "via apiserver-1\npartition client name=client-2\nvia client-2",
	noNegation: true,
	onServer:   true,
	run: func(_ context.Context, s *session, args []string) error {
		path, err := s.path(args[0])
		if err != nil {
			return err
		}
		s.via = path
		return s.identify()
	},
}

// path finds a client, or makes it: nil is the first.
func (s *session) path(name string) (*envtest.Client, error) {
	if name == anyPath {
		return nil, nil
	}
	if path := s.paths[name]; path != nil {
		return path, nil
	}
	next := fmt.Sprintf("client-%d", len(s.paths)+1)
	if strings.HasPrefix(name, "client-") {
		if name != next {
			return nil, fmt.Errorf("%w: there is no %s%s; the next new one is %s", errUsage, name, nearest.DidYouMean(name, []string{next}), next)
		}
		s.paths[name] = s.server.NewClient()
		return s.paths[name], nil
	}
	server, err := s.serverOf([]string{name})
	if err != nil {
		return nil, err
	}
	path := s.server.NewClient()
	path.Use(server)
	s.paths[name] = path
	return path, nil
}
