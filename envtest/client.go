package envtest

import (
	"net/http"
	"sync"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/serve"
)

// Client is the way of one client to the API servers, inside the process. It goes to
// one server at a time: the first that accepts requests, until that one is gone, as
// behind a load balancer, or the one that Use says. Make it with
// ControlPlane.NewClient. All its methods may be called from any goroutine.
type Client struct {
	cp    *ControlPlane
	admin http.RoundTripper // of the admin's requests

	mu     sync.Mutex
	pinned *Server // nil for any
	cut    bool
	conn   *serve.Connection // nil before the first request
	server *Server           // whose conn is
}

// NewClient returns a way to the API servers that nobody else goes.
func (cp *ControlPlane) NewClient() *Client { return newClient(cp, nil) }

func newClient(cp *ControlPlane, pinned *Server) *Client {
	c := &Client{cp: cp, pinned: pinned}
	c.admin = cp.observed(AdminUser, clientTransport{c})
	return c
}

// Config returns a configuration of a cluster admin whose requests go this way.
// The caller may change the copy.
func (c *Client) Config() *rest.Config {
	config := rest.CopyConfig(c.cp.admin)
	config.Transport = c.admin
	return config
}

// AddUser returns a configuration of a user in groups whose requests go this way;
// see ControlPlane.AddUser.
func (c *Client) AddUser(name string, groups ...string) *rest.Config {
	return &rest.Config{
		Host:        "https://" + c.cp.first().addr.String(),
		BearerToken: c.cp.users.add(name, groups),
		Transport:   c.cp.observed(name, clientTransport{c}),
		QPS:         -1, // a test waits for the server, not for its own client
	}
}

// Use makes all requests go to one server from now on; nil means to the first
// that accepts them. What is in flight at another one breaks: its connection is
// reset.
func (c *Client) Use(server *Server) {
	c.mu.Lock()
	c.pinned = server
	var left *serve.Connection
	if server != nil && c.server != server {
		left, c.conn, c.server = c.conn, nil, nil
	}
	c.mu.Unlock()
	if left != nil {
		left.Break(serve.ErrReset)
	}
}

// Server returns the server to which the requests go, nil if that is not decided:
// none was made, or its server is gone.
func (c *Client) Server() *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned != nil || c.conn == nil || !c.conn.Usable() {
		return c.pinned
	}
	return c.server
}

// Cut lets nothing through until heal is called: requests and watches in flight time
// out, and no server can be reached.
func (c *Client) Cut() (heal func()) {
	c.mu.Lock()
	left := c.conn
	c.cut, c.conn, c.server = true, nil, nil
	c.mu.Unlock()
	if left != nil {
		left.Break(serve.ErrTimeout)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cut = false
	}
}

// clientTransport is the http.RoundTripper of a client's configurations.
type clientTransport struct{ client *Client }

// RoundTrip implements http.RoundTripper.
func (t clientTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	conn, err := t.client.connection()
	if err != nil {
		return serve.Refuse(req, err)
	}
	return conn.RoundTrip(req)
}

// connection returns the one there is, or opens one.
func (c *Client) connection() (*serve.Connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, serve.ErrUnreachable
	}
	if c.conn != nil && c.conn.Usable() {
		return c.conn, nil
	}
	candidates := c.cp.servers
	if c.pinned != nil {
		candidates = []*Server{c.pinned}
	}
	for _, server := range candidates {
		if conn, err := server.connect(); err == nil {
			c.conn, c.server = conn, server
			return conn, nil
		}
	}
	return nil, serve.ErrRefused
}
