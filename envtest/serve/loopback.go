package serve

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// loopback carries the server's own requests. Once the server stops, it strips
// answers of what makes client-go try again: whoever asks is about to end too, and
// would sleep for a second first.
type loopback struct {
	*Connection
}

// RoundTrip implements http.RoundTripper.
func (l loopback) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.endpoint.refusing.Load() {
		return Refuse(req, ErrRefused)
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
