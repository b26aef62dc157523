package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// Config is what an Endpoint is made of. The zero value has no port, and cannot
// upgrade requests.
type Config struct {
	// Address is where to listen besides in memory, on loopback, such as
	// "127.0.0.1:0". Empty means nowhere.
	Address string
	// TLS is the client side of the connections of upgrade requests.
	TLS *tls.Config
	// Enter is called before each request from inside the process is handled, and leave after it, so
	// that its goroutine can be marked as the server's.
	Enter func() (leave func())
}

// Endpoint is where one run of an API server can be reached. The server opens it to
// accept requests, drains it when it begins to stop, and closes it when all are
// answered; before and after, requests are refused as by a port at which no
// server listens, but for the server's own, which wait for it to open. Whoever made it stops it.
type Endpoint struct {
	listener *listener
	tls      *tls.Config
	enter    func() (leave func())
	loopback loopback

	handler  atomic.Pointer[http.Handler] // nil while no request may come in
	opened   chan struct{}                // closed by Open
	draining atomic.Bool
	refusing chan struct{} // closed when the server's own requests are refused
	refuse   sync.Once     // closes refusing

	mu          sync.Mutex
	ended       bool // by Close, Reset or Stop
	connections map[*Connection]struct{}
}

// Listen makes an endpoint and opens its listener.
func Listen(config Config) (*Endpoint, error) {
	l, err := listen(config.Address)
	if err != nil {
		return nil, err
	}
	e := &Endpoint{
		listener: l, tls: config.TLS, enter: config.Enter,
		opened: make(chan struct{}), refusing: make(chan struct{}), connections: map[*Connection]struct{}{},
	}
	if e.enter == nil {
		e.enter = func() (leave func()) { return func() {} }
	}
	e.loopback = loopback{e.add(nil)}
	return e, nil
}

// Addr is the address to advertise: that of the port if there is one.
func (e *Endpoint) Addr() *net.TCPAddr { return e.listener.addr }

// HasPort reports whether other processes can connect.
func (e *Endpoint) HasPort() bool { return e.listener.tcp != nil }

// Listener is what to serve TLS on.
func (e *Endpoint) Listener() net.Listener { return e.listener }

// Loopback carries the requests of the server to itself.
func (e *Endpoint) Loopback() http.RoundTripper { return e.loopback }

// Open lets requests in. It may be called once, and does nothing after Reset.
func (e *Endpoint) Open(handler http.Handler) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	e.handler.Store(&handler)
	close(e.opened)
}

// Opened is closed when requests may come in.
func (e *Endpoint) Opened() <-chan struct{} { return e.opened }

func (e *Endpoint) open() bool { return e.handler.Load() != nil }

// Drain is for a server that begins to stop: from now on its own requests that fail
// do so for good, without advice to try again.
func (e *Endpoint) Drain() { e.draining.Store(true) }

// RefuseLoopback is for a server that stops before its boot is over: from now on its
// own requests are refused, each of which may wait for seconds, and another follow.
func (e *Endpoint) RefuseLoopback() { e.refuse.Do(func() { close(e.refusing) }) }

// Close lets no more requests in, and closes the listener's connections, as the end
// of a process would. It may be called more than once.
func (e *Endpoint) Close() {
	e.end()
	e.listener.conns.CloseAll()
}

// Reset ends everything as the sudden end of the server's process would: clients
// of what is in flight see their connections reset.
func (e *Endpoint) Reset() {
	for _, c := range e.end() {
		c.Break(ErrReset)
	}
	e.listener.reset()
}

// Disconnect resets the connections of all clients inside the process, and returns when nothing of
// what they have asked for is at work. They may connect again.
func (e *Endpoint) Disconnect(ctx context.Context) error {
	e.mu.Lock()
	connections := maps.Clone(e.connections)
	e.mu.Unlock()
	delete(connections, e.loopback.Connection)
	return breakOff(ctx, slices.Collect(maps.Keys(connections)), ErrReset)
}

// Stop breaks off what is in flight, closes the listener, and joins all goroutines.
func (e *Endpoint) Stop(ctx context.Context) error {
	defer e.listener.stop()
	return breakOff(ctx, e.end(), io.ErrUnexpectedEOF)
}

// breakOff breaks connections, and waits until none of their requests is at work.
func breakOff(ctx context.Context, connections []*Connection, lost error) error {
	for _, c := range connections {
		c.Break(lost)
	}
	for _, c := range connections {
		if err := c.requests.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Connect opens a connection of a client. The server sees its certificates, if it has
// any, leaf first; upgrade requests go without.
func (e *Endpoint) Connect(certificates ...*x509.Certificate) (*Connection, error) {
	if !e.open() {
		return nil, ErrRefused
	}
	return e.add(certificates), nil
}

// add makes a connection, and forgets broken ones that have nothing in flight.
func (e *Endpoint) add(certificates []*x509.Certificate) *Connection {
	c := newConnection(e, certificates)
	e.mu.Lock()
	defer e.mu.Unlock()
	for old := range e.connections {
		if old.closed.Load() && old.idle() {
			delete(e.connections, old)
		}
	}
	e.connections[c] = struct{}{}
	return c
}

// inside handles requests from inside the process.
type inside struct{ *Endpoint }

// ServeHTTP implements http.Handler.
func (i inside) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	handler := i.handler.Load()
	if handler == nil {
		panic(http.ErrAbortHandler) // closed since RoundTrip looked
	}
	defer i.enter()()
	(*handler).ServeHTTP(w, req)
}

// end lets no client in any more, and returns the connections there are.
func (e *Endpoint) end() []*Connection {
	e.RefuseLoopback()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.handler.Store(nil)
	return slices.Collect(maps.Keys(e.connections))
}
