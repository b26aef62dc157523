package upstream

// Works around lease.controller (k8s.io/component-helpers/apimachinery/lease),
// which renews the identity lease of a server under a mutex. Without this file a
// server that is stopped while a renewal waits makes virtual time stand still:
// TestIdentityLease, and TestCutDuringRenewal of envtest.

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"

	"k8s.io/klog/v2"
)

// errNotAgain stands for errors by whose text client-go would try again.
var errNotAgain = errors.New("the request for the identity lease has failed")

const identityLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

// identityLease carries a server's own requests.
type identityLease struct {
	next     http.RoundTripper
	renewals *Renewals
}

// BreakOffIdentityLease returns the transport of a server's own requests that
// breaks off renewals of its identity lease, but no deletion, when renewals stop.
// A renewal that fails does so for good: client-go would sleep before it tries again,
// under the mutex.
func BreakOffIdentityLease(next http.RoundTripper, renewals *Renewals) http.RoundTripper {
	return &identityLease{next, renewals}
}

// RoundTrip implements http.RoundTripper.
func (l *identityLease) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodDelete || !strings.HasPrefix(req.URL.Path, identityLeases) || req.URL.RawQuery != "" {
		return l.next.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	unlink := context.AfterFunc(l.renewals.ctx, func() { cancel(errNoRenewal) })
	response, err := l.next.RoundTrip(req.WithContext(ctx))
	release := func() { unlink(); cancel(nil) }
	if err != nil {
		release()
		if errors.Is(err, errNoRenewal) {
			return nil, err
		}
		klog.Warningf("Renew the identity lease: %v", err)
		return nil, errNotAgain
	}
	response.Header.Del("Retry-After")
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

// ServerID is the identity that upstream derives for an API server on a host.
func ServerID(host string) string {
	var text []byte
	for _, part := range []string{host, "kube-apiserver"} {
		text = binary.BigEndian.AppendUint16(text, uint16(len(part)))
		text = append(text, part...)
	}
	hash := sha256.Sum256(text)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:16]))
}
