package envtest_test

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"snowglobe.test/envtest"
)

// TestStreamsInMemory has client-go's executors and forwarders ask a server that listens nowhere, in
// virtual time: it knows no such Pod.
func TestStreamsInMemory(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		config := cp.Config()
		at := func(subresource string) *url.URL {
			u, err := url.Parse(config.Host + "/api/v1/namespaces/default/pods/none/" + subresource)
			require.NoError(t, err)
			return u
		}
		for _, subresource := range []string{"exec?command=ls&stdout=1", "attach?stdout=1"} {
			overSPDY, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, at(subresource))
			require.NoError(t, err)
			overWebSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, at(subresource).String())
			require.NoError(t, err)
			for name, executor := range map[string]remotecommand.Executor{"SPDY": overSPDY, "WebSocket": overWebSocket} {
				err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
				assert.ErrorContains(t, err, `pods "none" not found`, "%s over %s", subresource, name)
			}
		}
		transport, upgrader, err := spdy.RoundTripperFor(config)
		require.NoError(t, err)
		overSPDY := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at("portforward"))
		_, _, err = overSPDY.Dial(portforward.PortForwardProtocolV1Name)
		assert.ErrorContains(t, err, `pods "none" not found`)
		overWebSocket, err := portforward.NewSPDYOverWebsocketDialer(at("portforward"), config)
		require.NoError(t, err)
		_, _, err = overWebSocket.Dial(portforward.PortForwardProtocolV1Name)
		assert.ErrorContains(t, err, `pods "none" not found`)
	})
}
