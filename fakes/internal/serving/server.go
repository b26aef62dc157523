package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/conns"
)

// ErrStopped is the cause that ends the contexts of requests when the server stops.
var ErrStopped = errors.New("the fake has been stopped")

// Server is a stub.Server whose answers last as long as they like, until it stops.
type Server struct {
	*stub.Server
	handler http.Handler
	conns   conns.Set
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

// Serve serves plain HTTP. The listener is the server's from now on.
func Serve(l net.Listener, handler http.Handler) *Server {
	s := newServer(handler)
	s.Server = stub.Serve(s.conns.Keep(l), http.HandlerFunc(s.serve))
	return s
}

// ServeTLS serves HTTPS with a certificate for the hosts, as stub.ServeTLS does.
func ServeTLS(l net.Listener, handler http.Handler, hosts ...string) (*Server, error) {
	s := newServer(handler)
	served, err := stub.ServeTLS(s.conns.Keep(l), http.HandlerFunc(s.serve), hosts...)
	s.Server = served
	return s, err
}

func newServer(handler http.Handler) *Server {
	s := &Server{handler: handler}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// serve runs the handler with a context that also ends when the server stops.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	s.handler.ServeHTTP(w, r.WithContext(ctx))
}

// BreakAll breaks off all connections that are open, as a network does that fails. New
// ones are accepted.
func (s *Server) BreakAll() { s.conns.CloseAllAs(reset) }

// Stop ends the contexts of all requests, closes the listener and all connections, and
// waits for the handlers.
func (s *Server) Stop(ctx context.Context) error {
	s.cancel(ErrStopped)
	return s.Server.Stop(ctx)
}

// reset makes the end of a connection an abrupt one, where the network knows such.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it is closed all the same
	}
}

// Break breaks off a connection that a handler has taken over, below TLS if there is
// any, so that the client gets no goodbye.
func Break(taken net.Conn) {
	if secure, ok := taken.(*tls.Conn); ok {
		taken = secure.NetConn()
	}
	_ = taken.Close() // the client may have done so
}
