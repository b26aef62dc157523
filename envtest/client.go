package envtest

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"

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
	cp   *ControlPlane
	name string

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
// server=apiserver-0". client-0 is the path of ControlPlane.Config
// and Server.Config.
func (cp *ControlPlane) NewClient() *Client { return newClient(cp, clientName(cp.clients.Add(1)), nil) }

func clientName(number int64) string { return fmt.Sprintf("client-%d", number) }

func newClient(cp *ControlPlane, name string, pinned *Server) *Client {
	return &Client{cp: cp, name: name, pinned: pinned, routes: map[identity]*route{}}
}

// Config is ControlPlane.Config for requests that take this path.
func (c *Client) Config(opts ...ConfigOption) *rest.Config {
	config, err := c.config(newCredentials(opts))
	if err != nil {
		return &rest.Config{Transport: refusal{err}}
	}
	config.QPS = -1 // a test waits for the server, not for its own client
	return config
}

func (c *Client) config(who credentials) (*rest.Config, error) {
	if who.remote {
		return c.remoteConfig(who)
	}
	config := &rest.Config{Host: "https://" + c.cp.first().addr.String()}
	of := identity{user: who.name}
	switch {
	case who.certified:
		var err error
		if of.certificate, err = c.cp.authority.ClientCertificate(who.validity, who.name, who.groups...); err != nil {
			return nil, err
		}
	case who.isAdmin:
		config.BearerToken = c.cp.users.adminToken()
	default:
		config.BearerToken = c.cp.users.add(who)
	}
	config.Transport = c.transport(of)
	tls, err := c.cp.upgradeTLS()
	config.WrapTransport = serve.Streams(clientTransport{c, of}.dial, tls)
	return config, err
}

// remoteConfig is for the listener of the path's server, or of the first.
func (c *Client) remoteConfig(who credentials) (*rest.Config, error) {
	server := cmp.Or(c.pin(), c.cp.first())
	if !server.hasPort {
		return nil, fmt.Errorf("remote configuration of %q: the control plane has no TLS listener; start it WithListener", who.name)
	}
	pair, err := c.cp.clientPair(who)
	if err != nil {
		return nil, err
	}
	tls, err := c.cp.servedTo(server.addr.IP.String())
	if err != nil {
		return nil, err
	}
	tls.CertData, tls.KeyData = pair.Cert, pair.Key
	return &rest.Config{Host: "https://" + server.addr.String(), TLSClientConfig: tls}, nil
}

// refusal fails the requests of a configuration that can't be made.
type refusal struct{ err error }

// RoundTrip implements http.RoundTripper.
func (r refusal) RoundTrip(req *http.Request) (*http.Response, error) {
	return serve.Refuse(req, r.err)
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

// pin returns the server given to Use, nil for none.
func (c *Client) pin() *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pinned
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

// Name is what rules call the path: "partition client name=NAME" lets nothing through.
// Requests and watches in flight time out then, and no server can be reached.
func (c *Client) Name() string { return c.name }

// cut lets nothing through until heal is called.
func (c *Client) cut() (heal func()) {
	entry, err := c.cp.faults.Inject("partition client name=" + c.name + " optional")
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

// dial opens a connection for client-go's executors and forwarders, to which the address says nothing.
func (t clientTransport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	r, err := t.client.route(t.of)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return r.Dial(ctx, network, address)
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
	r := &route{server, conn, c.cp.faults.OnPartition(context.Background(), path, func(partitioned bool) {
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
