package stub

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"time"
)

// listener makes the connections that it accepts known to their server.
type listener struct {
	net.Listener
	server *Server
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, server: l.server}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.conns = append(l.server.conns, c)
	return c, nil
}

// conn is an open connection. The lock of its server guards the other fields.
type conn struct {
	net.Conn
	server *Server
	state  http.ConnState
	since  time.Time // when the state was reached
	http2  bool
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.server.mu.Lock()
	c.server.conns = slices.DeleteFunc(c.server.conns, func(other *conn) bool { return other == c })
	c.server.mu.Unlock()
	return c.Conn.Close()
}

// over reports whether the connection can be closed when the server stops: no request
// has come, or all have been answered, or it is a tunnel, which has no end of its own.
func (c *conn) over() bool { return c.state != http.StateActive && !c.parting() }

// parting reports whether the connection became idle so recently that the end of its last
// answer may not have been sent yet: see goodbye.
func (c *conn) parting() bool {
	return c.state == http.StateIdle && c.http2 && time.Since(c.since) < goodbye
}

func (s *Server) any(which func(*conn) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.conns, which)
}

func (s *Server) closeConns(which func(*conn) bool) {
	s.mu.Lock()
	closing := slices.DeleteFunc(slices.Clone(s.conns), func(c *conn) bool { return !which(c) })
	s.mu.Unlock()
	for _, c := range closing {
		_ = c.Close() // its reader sees the error
	}
}

// BreakAll breaks off all connections that are open, as a network does that fails. New
// ones are accepted.
func (s *Server) BreakAll() {
	s.closeConns(func(c *conn) bool {
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // TCP resets it; any other network only closes it
		}
		return true
	})
}

// Break breaks off a connection that a handler has taken over, below TLS if there is
// any, so that the client gets no goodbye.
func Break(taken net.Conn) {
	if secure, ok := taken.(*tls.Conn); ok {
		taken = secure.NetConn()
	}
	_ = taken.Close() // the client may have done so
}

// setState is http.Server's ConnState hook. It is called with StateNew for each connection
// before another is accepted, and with StateHijacked or StateClosed at last.
func (s *Server) setState(served net.Conn, state http.ConnState) {
	http2 := false
	if encrypted, ok := served.(*tls.Conn); ok {
		served = encrypted.NetConn()
		if state == http.StateIdle {
			http2 = encrypted.ConnectionState().NegotiatedProtocol == "h2"
		}
	}
	c := served.(*conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.state, c.since, c.http2 = state, time.Now(), http2
	switch state {
	case http.StateNew:
		s.busy++
	case http.StateIdle:
		select {
		case s.idled <- struct{}{}:
		default:
		}
	case http.StateHijacked, http.StateClosed:
		s.busy--
		s.tell()
	}
}

// count lets Stop wait for the handlers. Those of HTTP/2 and of hijacked connections
// have goroutines that http.Server does not wait for.
func (s *Server) count(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		stopped := s.stopping && s.busy == 0
		if !stopped {
			s.busy++
		}
		s.mu.Unlock()
		if stopped { // the connection is closed already
			panic(http.ErrAbortHandler)
		}
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.busy--
			s.tell()
		}()
		handler.ServeHTTP(w, r)
	})
}

// tell wakes Stop up when nothing is left. The caller holds the lock.
func (s *Server) tell() {
	if !s.stopping || s.busy > 0 {
		return
	}
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}
