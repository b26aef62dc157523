package kubelet_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/pki"
)

// page returns the body of a page that is there.
func (w *world) page(path string) []byte {
	w.t.Helper()
	response, err := w.get(w.t.Context(), w.parse(path))
	require.NoError(w.t, err)
	body, err := io.ReadAll(response.Body)
	assert.NoError(w.t, err)
	assert.NoError(w.t, response.Body.Close())
	assert.Equal(w.t, http.StatusOK, response.StatusCode, path)
	return body
}

func TestPages(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		require.NoError(t, w.AddPod(&kubelet.Pod{Namespace: "kube-system", Name: "dns", Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "dns", Annotations: map[string]string{"a": "b"}}}}))
		for path, want := range map[string]string{
			"/healthz": "ok", "/configz": "KubeletConfiguration", "/metrics": "kubelet_running_pods 2\n",
			"/metrics/cadvisor": "machine_cpu_cores 1\n", "/metrics/resource": "resource_scrape_error 0\n", "/metrics/probes": "process_start_time_seconds 0\n",
		} {
			assert.Contains(t, string(w.page(path)), want)
		}
		var pods corev1.PodList
		require.NoError(t, json.Unmarshal(w.page("/pods"), &pods))
		assert.Equal(t, "PodList", pods.Kind)
		require.Len(t, pods.Items, 2)
		assert.Equal(t, "app", pods.Items[0].Spec.Containers[0].Name)
		assert.Equal(t, "node", pods.Items[0].Spec.NodeName)
		assert.Equal(t, "b", pods.Items[1].Annotations["a"])

		var summary stats.Summary
		require.NoError(t, json.Unmarshal(w.page("/stats/summary"), &summary))
		assert.Equal(t, "node", summary.Node.NodeName)
		assert.Equal(t, "app", summary.Pods[0].Containers[0].Name)

		w.RemovePod("default", "web")
		require.NoError(t, json.Unmarshal(w.page("/runningpods/"), &pods))
		assert.Len(t, pods.Items, 1)

		w.Requests.Use(stub.Rule[kubelet.Request, kubelet.Answer]{When: func(r kubelet.Request) bool { return r.Path == "/metrics" }})
		w.Requests.Reply(kubelet.Answer{Page: []byte("up 1\n")}, nil)
		assert.Equal(t, "up 1\n", string(w.page("/metrics")))
	})
}

func TestAddPodRefuses(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		assert.ErrorContains(t, w.AddPod(&kubelet.Pod{Name: "web"}), `add pod "web" of namespace ""`)
		twice := []*kubelet.Container{{Name: "a"}, {Name: "a"}}
		assert.ErrorContains(t, w.AddPod(&kubelet.Pod{Namespace: "default", Name: "web", Containers: twice}), `container 1 has the name "a"`)
	})
}

// TestCallers lets those in whom the authority has signed, and knows their names.
func TestCallers(t *testing.T) {
	ours, err := pki.NewAuthority("ours")
	require.NoError(t, err)
	theirs, err := pki.NewAuthority("theirs")
	require.NoError(t, err)
	trusted, err := ours.Client("kube-apiserver-kubelet-client", "system:masters")
	require.NoError(t, err)
	stranger, err := theirs.Client("kube-apiserver-kubelet-client", "system:masters")
	require.NoError(t, err)
	server, err := ours.Serving("node")
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		client *pki.Pair
		code   int
	}{
		{"trusted", &trusted, http.StatusOK}, {"stranger", &stranger, http.StatusUnauthorized},
		{"no certificate", nil, http.StatusUnauthorized}, {"not a client", &server, http.StatusUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			w := newWorld(t, l, kubelet.Config{ClientCA: ours.CertPEM()}, c.client)
			response, err := w.get(t.Context(), w.parse("/pods"))
			require.NoError(t, err)
			assert.Equal(t, c.code, response.StatusCode)
			assert.NoError(t, response.Body.Close())
			call := w.Requests.Calls()[0]
			if c.client == &trusted {
				assert.NoError(t, call.Err)
				assert.Equal(t, []string{"kube-apiserver-kubelet-client", "system:masters"}, append([]string{call.Request.User}, call.Request.Groups...))
			} else {
				assert.ErrorContains(t, call.Err, "unauthorized")
			}
			w.end()
		})
	}
}

func TestServeRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, err = kubelet.Serve(l, kubelet.Config{ClientCA: []byte("no PEM")})
	assert.ErrorContains(t, err, "ClientCA: there is no certificate in the PEM")
	_, err = net.Dial("tcp", l.Addr().String())
	assert.Error(t, err, "the listener is closed")
}
