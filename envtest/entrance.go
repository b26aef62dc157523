package envtest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/process"
)

// entrance is where requests from inside the process enter the chain. While the
// server does not listen it refuses connections as a port nobody listens on
// does; client-go tries again what it takes for a lost connection, but not that.
type entrance struct {
	listener *listener
	tls      *tls.Config
	serving  atomic.Pointer[serving]
	own      *connection // of the server to itself

	mu    sync.Mutex
	conns map[*connection]struct{} // all that may have something in flight
}

// serving is a chain that accepts requests.
type serving struct {
	handler http.Handler
	member  *process.Member
}

func newEntrance(l *listener, tls *tls.Config) *entrance {
	e := &entrance{listener: l, tls: tls, conns: map[*connection]struct{}{}}
	e.own = e.add()
	return e
}

var errRefused = &net.OpError{Op: "dial", Net: "memory", Addr: memnet.Addr{}, Err: syscall.ECONNREFUSED}

// connect opens a connection.
func (e *entrance) connect() (*connection, error) {
	if e.serving.Load() == nil {
		return nil, errRefused
	}
	return e.add(), nil
}

// add makes a connection, and forgets those that are closed and have nothing in
// flight any more.
func (e *entrance) add() *connection {
	c := newConnection(e)
	now, cancel := context.WithCancel(context.Background())
	cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	for old := range e.conns {
		if old.closed.Load() && old.Wait(now) == nil {
			delete(e.conns, old)
		}
	}
	e.conns[c] = struct{}{}
	return c
}

// serve handles a request in a goroutine that counts as the server's.
func (e *entrance) serve(w http.ResponseWriter, req *http.Request) {
	s := e.serving.Load()
	if s == nil {
		panic(http.ErrAbortHandler) // closed since RoundTrip looked
	}
	s.member.Do(func() { s.handler.ServeHTTP(w, req) })
}

// end breaks off what is still in flight and joins its goroutines.
func (e *entrance) end(ctx context.Context) error {
	for _, c := range e.shut() {
		_ = c.Close()
	}
	for _, c := range e.shut() {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reset breaks off what is in flight as the sudden end of a process would.
func (e *entrance) reset() {
	for _, c := range e.shut() {
		c.breakOff(errReset)
	}
}

// shut lets nobody in any more, and returns the connections there are.
func (e *entrance) shut() []*connection {
	e.serving.Store(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	conns := make([]*connection, 0, len(e.conns))
	for c := range e.conns {
		conns = append(conns, c)
	}
	return conns
}

// loopback carries the server's own requests. When the server stops it takes what
// makes client-go try again out of the answers: who asks is about to end, and
// would sleep for a second first.
type loopback struct {
	*connection
	stopping <-chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (l loopback) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := l.connection.RoundTrip(req)
	switch {
	case !closed(l.stopping):
	case err == nil:
		response.Header.Del("Retry-After")
	case utilnet.IsProbableEOF(err), utilnet.IsConnectionReset(err):
		err = errRefused
	}
	return response, err
}
