package chain

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// identityLease carries the server's own requests, and breaks off those that
// renew its identity lease when renewals end. The lease can still be deleted.
type identityLease struct {
	next     http.RoundTripper
	renewals renewals
}

// RoundTrip implements http.RoundTripper.
func (l *identityLease) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodDelete || !strings.HasPrefix(req.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases") || req.URL.RawQuery != "" {
		return l.next.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	unlink := context.AfterFunc(l.renewals, func() { cancel(errNoRenewal) })
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
