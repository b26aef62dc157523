package envtest

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/internal/conns"
)

// connection is what a client has to one life of a server: its requests, and the
// connections of its upgrades.
type connection struct {
	memnet.Transport
	entrance *entrance
	upgrades *http.Transport
	closed   atomic.Bool
	dialed   conns.Set
}

var (
	errReset   = &net.OpError{Op: "read", Net: "memory", Addr: memnet.Addr{}, Err: syscall.ECONNRESET}
	errSilence = &net.OpError{Op: "read", Net: "memory", Addr: memnet.Addr{}, Err: syscall.ETIMEDOUT}
)

func newConnection(e *entrance) *connection {
	c := &connection{entrance: e}
	c.upgrades = memnet.UpgradeTransport(c.dial, e.tls)
	c.Transport.Handler, c.Transport.Upgrade = http.HandlerFunc(e.serve), c.upgrades
	return c
}

// open says whether requests can be sent.
func (c *connection) open() bool { return !c.closed.Load() && c.entrance.serving.Load() != nil }

// RoundTrip implements http.RoundTripper.
func (c *connection) RoundTrip(req *http.Request) (*http.Response, error) {
	if !c.open() {
		return refuse(req, errRefused)
	}
	return c.Transport.RoundTrip(req)
}

// refuse is how a request ends that cannot be sent.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, err
}

// Close breaks off what is in flight.
func (c *connection) Close() error {
	c.closed.Store(true)
	c.closeDialed()
	return c.Transport.Close()
}

// breakOff ends what is in flight with an error for its clients.
func (c *connection) breakOff(lost error) {
	c.closed.Store(true)
	c.Transport.Break(lost)
	c.closeDialed()
}

// dial opens a connection to secure serving, for one upgrade.
func (c *connection) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.entrance.listener.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	dialed := c.dialed.Add(conn)
	if c.closed.Load() {
		_ = dialed.Close()
		return nil, errRefused
	}
	return dialed, nil
}

func (c *connection) closeDialed() {
	c.dialed.CloseAll()
	c.upgrades.CloseIdleConnections()
}
