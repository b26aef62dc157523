package serve

import (
	"net"
	"net/http"
	"syscall"

	"snowglobe.test/envtest/memnet"
)

// The errors of requests that reach no server, as a network would put it. client-go
// tries again after ErrReset and ErrTimeout, not after the others.
var (
	// ErrRefused: no server listens.
	ErrRefused error = &net.OpError{Op: "dial", Net: "memory", Addr: memnet.Addr{}, Err: syscall.ECONNREFUSED}
	// ErrUnreachable: the network is cut, and nothing can be dialed.
	ErrUnreachable error = &net.OpError{Op: "dial", Net: "memory", Addr: memnet.Addr{}, Err: syscall.EHOSTUNREACH}
	// ErrReset: the server's process has ended.
	ErrReset error = &net.OpError{Op: "read", Net: "memory", Addr: memnet.Addr{}, Err: syscall.ECONNRESET}
	// ErrHandshake: the server listens, and accepts no connection.
	ErrHandshake error = handshakeError{}
	// ErrTimeout: the network was cut while the answer was under way.
	ErrTimeout error = &net.OpError{Op: "read", Net: "memory", Addr: memnet.Addr{}, Err: syscall.ETIMEDOUT}
)

// Refuse is what a RoundTripper returns for a request that cannot be sent.
func Refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, err
}

// handshakeError is as net/http's own error, which it does not export.
type handshakeError struct{}

func (handshakeError) Error() string   { return "net/http: TLS handshake timeout" }
func (handshakeError) Timeout() bool   { return true }
func (handshakeError) Temporary() bool { return true }
