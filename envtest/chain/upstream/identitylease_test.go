package upstream

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
