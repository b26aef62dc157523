package serve_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/serve"
)

// TestLoopbackRetries has requests of a server to itself broken off, and answered
// with advice to retry. Ten retries of a second each are client-go's.
func TestLoopbackRetries(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"broken off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"advised": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				endpoint := listen(t, serve.Config{})
				endpoint.Open(handler)
				took := func() (time.Duration, error) {
					client := kubernetes.NewForConfigOrDie(&rest.Config{Transport: endpoint.Loopback()})
					began := time.Now()
					err := client.RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
					return time.Since(began), err
				}
				running, err := took()
				assert.Error(t, err)
				assert.Equal(t, 10*time.Second, running)
				endpoint.Drain()
				stopping, err := took()
				assert.Error(t, err)
				assert.Zero(t, stopping)
				assert.Equal(t, name == "broken off", utilnet.IsConnectionRefused(err))
			})
		})
	}
}

// TestLoopbackBeforeOpen has the server ask itself before it serves: its request waits,
// and no longer than for a handshake.
func TestLoopbackBeforeOpen(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*serve.Endpoint) // after five seconds
		want error
		took time.Duration
	}{
		"opens":   {func(e *serve.Endpoint) { e.Open(answer("snow")) }, nil, 5 * time.Second},
		"refuses": {(*serve.Endpoint).RefuseLoopback, serve.ErrRefused, 5 * time.Second},
		"resets":  {(*serve.Endpoint).Reset, serve.ErrRefused, 5 * time.Second},
		"waits":   {func(*serve.Endpoint) {}, serve.ErrHandshake, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				endpoint := listen(t, serve.Config{})
				time.AfterFunc(5*time.Second, func() { test.then(endpoint) })
				began := time.Now()
				_, err := get(t, endpoint.Loopback())
				assert.ErrorIs(t, err, test.want)
				assert.Equal(t, test.took, time.Since(began))
			})
		})
	}
}

// TestLoopbackGivesUp has whoever asks go before the server serves.
func TestLoopbackGivesUp(t *testing.T) {
	endpoint := listen(t, serve.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://localhost/", nil)
	require.NoError(t, err)
	response, err := endpoint.Loopback().RoundTrip(req)
	if err == nil {
		_ = response.Body.Close()
	}
	assert.ErrorIs(t, err, context.Canceled)
}

// listen makes an endpoint that the test stops.
func listen(t *testing.T, config serve.Config) *serve.Endpoint {
	t.Helper()
	endpoint, err := serve.Listen(config)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, endpoint.Stop(context.Background())) })
	return endpoint
}
