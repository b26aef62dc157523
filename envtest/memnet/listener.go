package memnet

import (
	"context"
	"net"
	"sync"
)

// Addr is the address of every in-memory listener and connection. It looks
// like a host:port, because servers split it and parse the host as an IP.
type Addr struct{}

// Network returns "memory".
func (Addr) Network() string { return "memory" }

// String returns a host and port that parse but that nothing listens on.
func (Addr) String() string { return "127.0.0.1:0" }

// Listener is a [net.Listener] that only its own dial methods reach.
type Listener struct {
	dialed chan net.Conn // the server's ends, handed from dialer to acceptor
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*Listener)(nil)

// Listen returns a listener. Each direction of a connection made through it
// buffers up to 64 KiB. Inside a synctest bubble all of it blocks durably.
func Listen() *Listener {
	return &Listener{dialed: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for a dialer and returns the server's end of the connection.
// After Close it returns an error that wraps [net.ErrClosed].
func (l *Listener) Accept() (net.Conn, error) {
	if !l.isClosed() {
		select {
		case c := <-l.dialed:
			return c, nil
		case <-l.closed:
		}
	}
	return nil, opError("accept", net.ErrClosed)
}

// Close ends pending and later calls of Accept and DialContext with an error
// that wraps [net.ErrClosed]. Connections already made stay open.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the address that all listeners share.
func (l *Listener) Addr() net.Addr { return Addr{} }

// DialContext waits until the listener accepts and returns the client's end of
// the connection. It gives up when ctx ends or the listener closes.
func (l *Listener) DialContext(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, opError("dial", err)
	}
	if l.isClosed() {
		return nil, opError("dial", net.ErrClosed)
	}
	client, server := newConns()
	select {
	case l.dialed <- server:
		return client, nil
	case <-l.closed:
		return nil, opError("dial", net.ErrClosed)
	case <-ctx.Done():
		return nil, opError("dial", ctx.Err())
	}
}

// DialNetwork is DialContext as [http.Transport] and client-go's rest.Config.Dial
// take it. It ignores network and address: every name leads to this listener.
func (l *Listener) DialNetwork(ctx context.Context, _, _ string) (net.Conn, error) {
	return l.DialContext(ctx)
}

func (l *Listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}
