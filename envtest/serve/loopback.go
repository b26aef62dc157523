package serve

import (
	"context"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// handshakeTimeout is how long client-go waits for a TLS handshake.
const handshakeTimeout = 10 * time.Second

// loopback carries the server's own requests. Those from before it serves wait, as at a
// port that listens and accepts no connection yet. Once the server stops, it strips answers of
// what makes client-go try again: whoever asks is about to end too, and would sleep for a
// second first.
type loopback struct {
	*Connection
}

// RoundTrip implements http.RoundTripper.
func (l loopback) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := l.endpoint.awaitOpen(req.Context()); err != nil {
		return Refuse(req, err)
	}
	response, err := l.Connection.RoundTrip(req)
	switch {
	case !l.endpoint.draining.Load():
	case err == nil:
		response.Header.Del("Retry-After")
	case utilnet.IsProbableEOF(err), utilnet.IsConnectionReset(err):
		err = ErrRefused
	}
	return response, err
}

// awaitOpen waits until requests may come in.
func (e *Endpoint) awaitOpen(ctx context.Context) error {
	select {
	case <-e.refusing:
		return ErrRefused
	case <-e.opened:
		return nil
	default:
	}
	timer := time.NewTimer(handshakeTimeout)
	defer timer.Stop()
	select {
	case <-e.refusing:
		return ErrRefused
	case <-e.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ErrHandshake
	}
}
