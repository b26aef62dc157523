package envtest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/memnet"
)

// entrance is where requests from inside the process enter the chain. While the
// server does not listen it refuses connections as a port nobody listens on
// does; client-go tries again what it takes for a lost connection, but not that.
type entrance struct {
	memnet.Transport
	upgrades *http.Transport
	serving  atomic.Pointer[serving]
}

// serving is a chain that accepts requests.
type serving struct {
	handler http.Handler
	member  *chain.Member
}

func newEntrance(l *listener, tls *tls.Config) *entrance {
	e := &entrance{upgrades: memnet.UpgradeTransport(l.DialContext, tls)}
	e.Transport.Handler, e.Transport.Upgrade = http.HandlerFunc(e.serve), e.upgrades
	return e
}

var errRefused = &net.OpError{Op: "dial", Net: "memory", Addr: memnet.Addr{}, Err: syscall.ECONNREFUSED}

// RoundTrip implements http.RoundTripper.
func (e *entrance) RoundTrip(req *http.Request) (*http.Response, error) {
	if e.serving.Load() == nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errRefused
	}
	return e.Transport.RoundTrip(req)
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
	e.serving.Store(nil)
	_ = e.Transport.Close()
	e.upgrades.CloseIdleConnections()
	return e.Transport.Wait(ctx)
}

// loopback carries the server's own requests. When the server stops it takes the
// advice to retry out of refusals: who asks is about to end, and would sleep for
// a second first.
type loopback struct {
	*entrance
	stopping <-chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (l loopback) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := l.entrance.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.stopping:
		response.Header.Del("Retry-After")
	default:
	}
	return response, nil
}
