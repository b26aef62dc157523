package chain

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/process"
)

// TestProbeIsBrokenOff has the server break off the answer to a probe, as its timeout filter
// does when the probe's context ends while the answer is being written. A client would see a
// broken connection, and the server would go on.
func TestProbeIsBrokenOff(t *testing.T) {
	var crash error
	member, err := process.Join("test", mustParse(t).Process(), io.Discard, func(err error) { crash = err })
	require.NoError(t, err)
	t.Cleanup(member.Leave)
	config := &genericapiserver.Config{LoopbackClientConfig: &rest.Config{BearerToken: "token"}}
	c := &Chain{generic: &genericStage{config: config}}
	c.untraced = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer utilruntime.HandleCrash()
		_, _ = io.WriteString(w, "[+]ping ok\n")
		panic(http.ErrAbortHandler)
	})
	ended := make(chan struct{})
	returned := false
	go func() {
		defer close(ended)
		member.Do(func() {
			ready, checks := c.Probe(t.Context(), "readyz")
			assert.False(t, ready)
			assert.Empty(t, checks)
			returned = true
		})
	}()
	<-ended
	assert.True(t, returned, "the goroutine that probed was ended")
	assert.NoError(t, crash)
}

// TestBootDone goes by what the server's own probe says.
func TestBootDone(t *testing.T) {
	member, err := process.Join("test", mustParse(t).Process(), io.Discard, func(error) {})
	require.NoError(t, err)
	t.Cleanup(member.Leave)
	for _, test := range []struct {
		red  string
		done bool
	}{
		{"informer-sync", false},
		{"poststarthook/failed", true},
		{"kms-providers", true},
		{"kms-provider-0", true},
	} {
		c := &Chain{generic: &genericStage{config: &genericapiserver.Config{LoopbackClientConfig: &rest.Config{BearerToken: "token"}}}}
		c.untraced = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "[+]ping ok\n[-]"+test.red+" failed: reason withheld\nreadyz check failed\n")
		})
		assert.Equal(t, test.done, c.bootDone(t.Context()), test.red)
	}
}
