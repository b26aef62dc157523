package envtest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/fakes/kubelet"
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
			for name, executor := range executors(t, config, at(subresource)) {
				err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
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

// executors are those of client-go, by what they speak.
func executors(t *testing.T, config *rest.Config, at *url.URL) map[string]remotecommand.Executor {
	overSPDY, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, at)
	require.NoError(t, err)
	overWebSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, at.String())
	require.NoError(t, err)
	return map[string]remotecommand.Executor{"SPDY": overSPDY, "WebSocket": overWebSocket}
}

// TestStreamsOfKubelet runs a command and attaches to a process in a container, all of it in memory and
// in virtual time.
func TestStreamsOfKubelet(t *testing.T) {
	const nodeIP = "192.0.2.10"
	shout := func(_ context.Context, p *kubelet.Process) (int, error) {
		said, err := io.ReadAll(p.Stdin)
		fmt.Fprintf(p.Stdout, "%s", bytes.ToUpper(said))
		return 7, err
	}
	authority := filepath.Join(t.TempDir(), "kubelet.crt")
	require.NoError(t, virtualtime.Bubble(func() error {
		listener := memnet.Listen()
		node, err := kubelet.Serve(listener, kubelet.Config{Hosts: []string{nodeIP}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(authority, node.CA(), 0o600))
		app := &kubelet.Container{Name: "app", Exec: shout, Attach: shout}
		web := &kubelet.Pod{Namespace: "default", Name: "web", Containers: []*kubelet.Container{app}}
		require.NoError(t, node.AddPod(web))
		cp, err := envtest.Launch(context.Background(), envtest.WithFlags("--kubelet-certificate-authority="+authority),
			envtest.WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		require.NoError(t, err)
		makeWeb(t, cp, nodeIP)
		for _, subresource := range []string{"exec?command=shout&", "attach?"} {
			at, err := url.Parse(cp.Config().Host + "/api/v1/namespaces/default/pods/web/" + subresource + "stdin=1&stdout=1")
			require.NoError(t, err)
			for name, executor := range executors(t, cp.Config(), at) {
				var said bytes.Buffer
				err = executor.StreamWithContext(context.Background(),
					remotecommand.StreamOptions{Stdin: strings.NewReader("snow"), Stdout: &said})
				assert.ErrorContains(t, err, "exit code 7", "%s over %s", subresource, name)
				assert.Equal(t, "SNOW", said.String(), "%s over %s", subresource, name)
			}
		}
		assert.NoError(t, cp.Stop(context.Background()))
		return node.Stop(context.Background())
	}))
}

// makeWeb makes a node and its Pod.
func makeWeb(t *testing.T, cp *envtest.ControlPlane, nodeIP string) {
	client := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1()
	_, err := client.Nodes().Create(context.Background(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = client.ServiceAccounts("default").Create(context.Background(), account, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.Pods("default").Create(context.Background(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "app", Image: "shout"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
