package serve

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"sync/atomic"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/internal/conns"
)

// Connection is what one client inside the process has open to an Endpoint:
// requests, and TLS connections of those that upgrade. It is an http.RoundTripper.
// Make it with Endpoint.Connect.
type Connection struct {
	endpoint *Endpoint
	requests memnet.Transport
	upgrades *http.Transport
	closed   atomic.Bool
	dialed   conns.Set // for upgrades
}

func newConnection(e *Endpoint, certificates []*x509.Certificate) *Connection {
	c := &Connection{endpoint: e}
	c.requests.PeerCertificates = certificates
	c.upgrades = memnet.UpgradeTransport(c.Dial, e.tls)
	c.requests.Handler, c.requests.Upgrade = inside{e}, c.upgrades
	return c
}

// Usable reports whether requests can be sent: no side has ended the connection.
func (c *Connection) Usable() bool { return !c.closed.Load() && c.endpoint.open() }

// RoundTrip implements http.RoundTripper.
func (c *Connection) RoundTrip(req *http.Request) (*http.Response, error) {
	if !c.Usable() {
		return Refuse(req, ErrRefused)
	}
	return c.requests.RoundTrip(req)
}

// Break fails what is in flight with the error lost, and refuses later requests.
func (c *Connection) Break(lost error) {
	c.closed.Store(true)
	c.requests.Break(lost)
	c.dialed.CloseAll()
	c.upgrades.CloseIdleConnections()
}

// Dial opens a connection to secure serving, for one upgrade.
func (c *Connection) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := c.endpoint.listener.dial(ctx)
	if err != nil {
		return nil, err
	}
	dialed := c.dialed.Add(conn)
	if c.closed.Load() {
		_ = dialed.Close()
		return nil, ErrRefused
	}
	return dialed, nil
}

// idle reports whether nothing is in flight.
func (c *Connection) idle() bool {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return c.requests.Wait(now) == nil
}
