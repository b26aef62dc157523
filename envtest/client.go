package envtest

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/serve"
	"snowglobe.test/internal/observe"
)

// Client is one client's path to the API servers, inside the process. Its requests
// go to the first server that accepts them until that one is gone, as behind a load
// balancer, or to the one chosen with Use. Make it with ControlPlane.NewClient. All
// its methods may be called from any goroutine.
type Client struct {
	cp    *ControlPlane
	name  string
	admin http.RoundTripper // of the admin's requests

	mu      sync.Mutex
	pinned  *Server // nil for any
	current *route  // the newest
	routes  map[identity]*route
}

// identity is who a connection is for.
type identity struct {
	user        string
	certificate *x509.Certificate // nil if the user has a token
}

// route is a connection of one user.
type route struct {
	server *Server
	*serve.Connection
	forget func() // the rules
}

// NewClient returns a separate path to the API servers. Rules call these paths
// client-1, client-2, and so on: "partition client name=client-1
// server=apiserver-0". client-0 is the path of ControlPlane.Config,
// ControlPlane.AddUser and Server.Config.
func (cp *ControlPlane) NewClient() *Client { return newClient(cp, cp.clients.Add(1), nil) }

func newClient(cp *ControlPlane, number int64, pinned *Server) *Client {
	c := &Client{cp: cp, name: fmt.Sprintf("client-%d", number), pinned: pinned, routes: map[identity]*route{}}
	c.admin = c.transport(identity{user: AdminUser})
	return c
}

// Config returns a copy of a cluster admin's configuration that uses this path.
func (c *Client) Config() *rest.Config {
	config := rest.CopyConfig(c.cp.admin)
	config.Transport = c.admin
	return config
}

// AddUser is ControlPlane.AddUser for a user whose requests take this path.
func (c *Client) AddUser(name string, groups ...string) *rest.Config {
	return &rest.Config{
		Host:        "https://" + c.cp.first().addr.String(),
		BearerToken: c.cp.users.add(name, groups),
		Transport:   c.transport(identity{user: name}),
		QPS:         -1, // a test waits for the server, not for its own client
	}
}

// AddCertificate is ControlPlane.AddCertificate for a user whose requests take this path.
func (c *Client) AddCertificate(validity time.Duration, name string, groups ...string) (*rest.Config, error) {
	certificate, err := c.cp.authority.ClientCertificate(validity, name, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:      "https://" + c.cp.first().addr.String(),
		Transport: c.transport(identity{name, certificate}),
		QPS:       -1,
	}, nil
}

// Use sends all requests to one server from now on, and resets connections to the
// others; nil means to the first server that accepts them.
func (c *Client) Use(server *Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned = server
	for _, r := range c.routes {
		if server != nil && r.server != server {
			c.drop(r)
			r.Break(serve.ErrReset)
		}
	}
}

// Server returns the server that requests go to: the one given to Use, or else that of
// the last connection; nil if there is none or its server is gone.
func (c *Client) Server() *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned != nil || !c.current.usable() {
		return c.pinned
	}
	return c.current.server
}

// Cut lets nothing through until heal is called: requests and watches in flight time
// out, and no server can be reached. It is the rule "partition client name=NAME".
func (c *Client) Cut() (heal func()) { return c.cp.partition("client name=" + c.name) }

// partition adds a rule that cuts a network path; heal removes it.
func (cp *ControlPlane) partition(path string) (heal func()) {
	entry, err := cp.faults.Inject("partition " + path + " optional")
	if err != nil {
		return func() {} // the control plane has stopped: nothing gets through
	}
	return entry.Remove
}

// clientTransport carries the requests of one user.
type clientTransport struct {
	client *Client
	of     identity
}

// transport returns what carries a user's requests, and records the answers if the
// trace is to be full.
func (c *Client) transport(of identity) http.RoundTripper {
	transport := clientTransport{c, of}
	if !c.cp.cfg.fullTrace {
		return transport
	}
	return observe.New(of.user, transport, c.cp.recorder)
}

// RoundTrip implements http.RoundTripper.
func (t clientTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r, err := t.client.route(t.of)
	if err != nil {
		return serve.Refuse(req, err)
	}
	observe.AnsweredBy(req, r.server.name)
	return r.RoundTrip(req)
}

// chain is what the user shows to the server.
func (i identity) chain() []*x509.Certificate {
	if i.certificate == nil {
		return nil
	}
	return []*x509.Certificate{i.certificate}
}

// route finds or opens a user's route, if possible to the server of the others.
func (c *Client) route(of identity) (*route, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.routes[of]; r.usable() {
		return r, nil
	}
	servers := c.cp.servers
	switch {
	case c.pinned != nil:
		servers = []*Server{c.pinned}
	case c.current.usable():
		servers = slices.Concat([]*Server{c.current.server}, servers)
	}
	refused := serve.ErrRefused
	for _, server := range servers {
		path := fault.Operation{Point: fault.ClientPath, Server: server.name, Name: c.name, Caller: of.user}
		if c.cp.faults.Partitioned(path) {
			refused = serve.ErrUnreachable
			continue
		}
		if conn, err := server.connect(of.chain()); err == nil {
			return c.add(of, server, conn, path), nil
		}
	}
	return nil, refused
}

// add replaces a user's route by a connection, which breaks when a rule cuts it.
func (c *Client) add(of identity, server *Server, conn *serve.Connection, path fault.Operation) *route {
	c.drop(c.routes[of])
	r := &route{server, conn, c.cp.faults.OnPartition(path, func(partitioned bool) {
		if partitioned {
			conn.Break(serve.ErrTimeout)
		}
	})}
	c.routes[of], c.current = r, r
	return r
}

// drop lets the rules forget a route.
func (c *Client) drop(r *route) {
	if r != nil {
		r.forget()
	}
}

// usable reports whether requests can go by the route; nil is none.
func (r *route) usable() bool { return r != nil && r.Usable() }
