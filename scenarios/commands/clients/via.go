package clients

import (
	"context"
	"fmt"
	"strings"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/engine"
)

// anyPath is the path of ControlPlane.Config: to the first server that accepts.
const anyPath = "client-0"

func (c *Clients) Via() engine.Command {
	return engine.Command{
		Name:    "via",
		Args:    "CLIENT | SERVER",
		Summary: "choose the path of the requests that follow",
		Details: `client-0 is the path after a start: as if behind a load balancer, it leads to the first
server that accepts requests, until that server is gone. client-1, client-2, and so on are
more paths like it, which rules can cut one by one. SERVER is a path to that server only;
it has a client number too. The user stays the same.`,
		Example:    "via apiserver-1\npartition client name=client-2\nvia client-2",
		NoNegation: true,
		Needs:      c.servers.Running,
		Run: func(_ context.Context, args []string) error {
			path, err := c.path(args[0])
			if err != nil {
				return err
			}
			c.via = path
			c.identify()
			return nil
		},
	}
}

// path finds a client, or makes it: nil is the first.
func (c *Clients) path(name string) (*envtest.Client, error) {
	if name == anyPath {
		return nil, nil
	}
	if path := c.paths[name]; path != nil {
		return path, nil
	}
	next := fmt.Sprintf("client-%d", len(c.paths)+1)
	if strings.HasPrefix(name, "client-") {
		if name != next {
			return nil, fmt.Errorf("%w: there is no %s%s; the next new one is %s", engine.ErrUsage, name, nearest.DidYouMean(name, []string{next}), next)
		}
		c.paths[name] = c.servers.ControlPlane().NewClient()
		return c.paths[name], nil
	}
	server, err := c.servers.Server([]string{name})
	if err != nil {
		return nil, err
	}
	path := c.servers.ControlPlane().NewClient()
	path.Use(server)
	c.paths[name] = path
	return path, nil
}
