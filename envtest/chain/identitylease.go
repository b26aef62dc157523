package chain

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

// identityLeaseHook is upstream's pre-shutdown hook that stops the renewal of the
// server's identity lease.
const identityLeaseHook = "stop-kube-apiserver-identity-lease-controller"

// identityLease carries the server's own requests, and breaks off those that
// renew its identity lease when the server is about to stop renewing it. Upstream
// renews under a mutex, for which the hook then waits; but a request may wait for
// time to pass, such as admission that is not ready, and virtual time does not
// pass while somebody waits for a mutex.
type identityLease struct {
	next    http.RoundTripper
	closing context.Context
	close   context.CancelCauseFunc
}

var errNoRenewal = errors.New("the server is shutting down and does not renew its identity lease")

func newIdentityLease(next http.RoundTripper) *identityLease {
	l := &identityLease{next: next}
	l.closing, l.close = context.WithCancelCause(context.Background())
	return l
}

// end breaks renewals off, now and later; the lease can still be deleted.
func (l *identityLease) end() { l.close(errNoRenewal) }

// RoundTrip implements http.RoundTripper.
func (l *identityLease) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodDelete || !strings.HasPrefix(req.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases") || req.URL.RawQuery != "" {
		return l.next.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	unlink := context.AfterFunc(l.closing, func() { cancel(errNoRenewal) })
	response, err := l.next.RoundTrip(req.WithContext(ctx))
	release := func() { unlink(); cancel(nil) }
	if err != nil {
		release()
		return nil, err
	}
	response.Body = &releasingBody{response.Body, release}
	return response, nil
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (l *identityLease) WrappedRoundTripper() http.RoundTripper { return l.next }

// releasingBody calls release when it is closed.
type releasingBody struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (b *releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
