package serve_test

import (
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

// listen makes an endpoint that the test stops.
func listen(t *testing.T, config serve.Config) *serve.Endpoint {
	t.Helper()
	endpoint, err := serve.Listen(config)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, endpoint.Stop(t.Context())) })
	return endpoint
}
