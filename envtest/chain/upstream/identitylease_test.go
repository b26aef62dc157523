package upstream

import (
	"context"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// goneServer answers no request before its context ends.
type goneServer struct{}

func (goneServer) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

// TestIdentityLease stops renewals while one waits for a server that is gone.
// What deletes the lease, or is about another object, goes on.
func TestIdentityLease(t *testing.T) {
	for _, test := range []struct {
		method, path string
		brokenOff    bool
	}{
		{http.MethodPut, identityLeases + "/apiserver-a", true},
		{http.MethodGet, identityLeases + "/apiserver-a", true},
		{http.MethodPost, identityLeases, true},
		{http.MethodDelete, identityLeases + "/apiserver-a", false},
		{http.MethodGet, identityLeases + "?watch=true", false},
		{http.MethodPut, "/api/v1/namespaces/kube-system/configmaps/a", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			renewals, left := NewRenewals(), assert.AnError
			ctx, cancel := context.WithCancelCause(t.Context())
			req, err := http.NewRequestWithContext(ctx, test.method, "https://server"+test.path, nil)
			require.NoError(t, err)
			time.AfterFunc(time.Second, renewals.Stop)
			time.AfterFunc(time.Minute, func() { cancel(left) })
			_, err = BreakOffIdentityLease(goneServer{}, renewals).RoundTrip(req)
			want := left
			if test.brokenOff {
				want = errNoRenewal
			}
			assert.ErrorIs(t, err, want, "%s %s", test.method, test.path)
			cancel(nil)
		})
	}
}

// brokenServer breaks every connection, and counts them.
type brokenServer struct{ asked int }

func (s *brokenServer) RoundTrip(*http.Request) (*http.Response, error) {
	s.asked++
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// busyServer advises to come again.
type busyServer struct{ asked int }

func (s *busyServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked++
	header := http.Header{"Retry-After": {"1"}}
	return &http.Response{StatusCode: http.StatusTooManyRequests, Header: header, Body: http.NoBody, Request: req}, nil
}

// TestIdentityLeaseIsNotTriedAgain has client-go ask for the lease, and for something
// else, which it tries again.
func TestIdentityLeaseIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, busy := &brokenServer{}, &busyServer{}
		for server, asked := range map[http.RoundTripper]*int{broken: &broken.asked, busy: &busy.asked} {
			client := kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://server", Transport: BreakOffIdentityLease(server, NewRenewals())})
			_, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "apiserver-a", metav1.GetOptions{})
			assert.Error(t, err)
			assert.Equal(t, 1, *asked)
			_, err = client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "a", metav1.GetOptions{})
			assert.Error(t, err)
			assert.Greater(t, *asked, 2)
		}
	})
}

// TestIdentityLeaseAnswered stops renewals after the answer to one has come. It can
// be read to its end, and what would break the request off is gone with it.
func TestIdentityLeaseAnswered(t *testing.T) {
	renewals, server := NewRenewals(), &countingServer{}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server"+identityLeases+"/apiserver-a", nil)
	require.NoError(t, err)
	response, err := BreakOffIdentityLease(server, renewals).RoundTrip(req)
	require.NoError(t, err)
	assert.NoError(t, server.last.Err())
	require.NoError(t, response.Body.Close())
	assert.ErrorIs(t, server.last.Err(), context.Canceled)
	renewals.Stop()
	assert.NotErrorIs(t, context.Cause(server.last), errNoRenewal)
}
