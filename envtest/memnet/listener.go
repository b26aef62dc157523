package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"google.golang.org/grpc/test/bufconn"
)

// connBufferBytes is how much one direction of a connection holds before the
// writer blocks.
const connBufferBytes = 64 << 10

// Addr is the address of everything in memory. Its network is "memory". Its
// text has the form host:port, because servers split their listener's and
// their peers' addresses and parse the host as an IP; nothing can be reached
// there.
type Addr struct{}

// Network returns "memory".
func (Addr) Network() string { return "memory" }

// String returns a host and port that parse and that nobody serves.
func (Addr) String() string { return "127.0.0.1:0" }

// Listener is a [net.Listener] that only its own DialContext reaches.
type Listener struct {
	inner *bufconn.Listener
}

// Listen returns a listener. Each direction of a connection made through it
// buffers 64 KiB.
func Listen() *Listener {
	return &Listener{inner: bufconn.Listen(connBufferBytes)}
}

// Accept waits for a dialer and returns the server's end of the connection.
// After Close it returns an error that wraps [net.ErrClosed].
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.inner.Accept()
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: Addr{}.Network(), Addr: Addr{}, Err: net.ErrClosed}
	}
	return conn{c}, nil
}

// Close ends pending and later calls of Accept and DialContext with an error
// that wraps [net.ErrClosed]. Connections already made stay open.
func (l *Listener) Close() error { return l.inner.Close() }

// Addr returns the address that all listeners share.
func (l *Listener) Addr() net.Addr { return Addr{} }

// DialContext waits until the listener accepts and returns the client's end of
// the connection. It gives up when ctx ends or the listener closes.
func (l *Listener) DialContext(ctx context.Context) (net.Conn, error) {
	c, err := l.inner.DialContext(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else {
			err = net.ErrClosed
		}
		return nil, &net.OpError{Op: "dial", Net: Addr{}.Network(), Addr: Addr{}, Err: err}
	}
	return conn{c}, nil
}

// DialNetwork is DialContext in the shape that [http.Transport] and client-go's
// rest.Config.Dial take. The network and address are ignored: every name leads
// to this listener.
func (l *Listener) DialNetwork(ctx context.Context, _, _ string) (net.Conn, error) {
	return l.DialContext(ctx)
}

// conn gives a memory connection the addresses and the errors of this package.
type conn struct {
	net.Conn
}

func (c conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, connError("read", err)
}

func (c conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, connError("write", err)
}

func (conn) LocalAddr() net.Addr  { return Addr{} }
func (conn) RemoteAddr() net.Addr { return Addr{} }

// connError turns bufconn's errors into those a socket gives, so that
// errors.Is with net.ErrClosed and os.ErrDeadlineExceeded works.
func connError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	var ne net.Error
	switch {
	case errors.As(err, &ne) && ne.Timeout():
		err = os.ErrDeadlineExceeded
	case errors.Is(err, io.ErrClosedPipe):
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: Addr{}.Network(), Source: Addr{}, Addr: Addr{}, Err: err}
}
