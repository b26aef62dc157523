package disk

import (
	"sync"

	"google.golang.org/grpc"
)

// calls are those that clients make to a server. None is under way before begin and after end.
type calls struct {
	serving func()

	mu    sync.Mutex
	grpc  *grpc.Server // nil until the server serves
	ended bool
}

// begin is called by etcd when it is about to serve.
func (c *calls) begin(server *grpc.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.grpc = server
	if c.serving != nil {
		c.serving()
	}
}

// end breaks the connections of clients and waits until no call is under way.
func (c *calls) end(ending func()) {
	c.mu.Lock()
	c.ended = true
	server := c.grpc
	if ending != nil {
		ending()
	}
	c.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}
