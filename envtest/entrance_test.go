package envtest

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
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
	running, stopping := make(chan struct{}), make(chan struct{})
	close(stopping)
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took := func(l *loopback) (time.Duration, error) {
					l.entrance = &entrance{}
					l.entrance.serving.Store(&serving{})
					l.Transport.Handler = handler
					client := kubernetes.NewForConfigOrDie(&rest.Config{Transport: l})
					began := time.Now()
					err := client.RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
					return time.Since(began), err
				}
				whole, err := took(&loopback{&connection{}, running})
				assert.Error(t, err)
				assert.Equal(t, 10*time.Second, whole)
				ending, err := took(&loopback{&connection{}, stopping})
				assert.Error(t, err)
				assert.Zero(t, ending)
				assert.Equal(t, name == "broken off", utilnet.IsConnectionRefused(err))
			})
		})
	}
}
