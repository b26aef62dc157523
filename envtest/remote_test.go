package envtest_test

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/envtest"
)

// TestKubeconfig reaches the server through TLS by the file it wrote.
func TestKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	cp := envtest.Start(t, envtest.WithKubeconfig(path))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the kubeconfig's mode is %o", mode)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if user := userOf(t, config); user != envtest.AdminUser {
		t.Errorf("the kubeconfig logs in as %q", user)
	}
	jane, err := cp.Servers()[0].RemoteConfig("jane", "developers")
	if err != nil {
		t.Fatal(err)
	}
	if user := userOf(t, jane); user != "jane" {
		t.Errorf("the client certificate logs in as %q", user)
	}
	stranger := rest.AnonymousClientConfig(jane)
	stranger.CAData = nil
	if _, err := kubernetes.NewForConfigOrDie(stranger).Discovery().ServerVersion(); err == nil {
		t.Error("a client without the CA trusts the server")
	}
	if err := cp.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stop left the kubeconfig: %v", err)
	}
}

func userOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo.Username
}

// TestRemoteConfigNeedsListener says what is missing.
func TestRemoteConfigNeedsListener(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		if _, err := cp.Servers()[0].RemoteConfig("jane"); err == nil {
			t.Error("a control plane without a port gave a remote configuration")
		}
	})
}

// TestUpgrade opens a watch as a WebSocket, which needs a real connection: it
// gets one in memory, without a port.
func TestUpgrade(t *testing.T) {
	cp := envtest.Start(t)
	transport, err := rest.TransportFor(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cp.Config().Host+"/api/v1/namespaces?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Origin": cp.Config().Host,
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "c25vd2dsb2JlIHNub3dnbA==",
	} {
		req.Header.Set(name, value)
	}
	response, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade was answered %s", response.Status)
	}
	frame := make([]byte, 2)
	if _, err := io.ReadFull(response.Body, frame); err != nil {
		t.Fatal(err)
	}
	if opcode := frame[0] & 0x0f; opcode != 1 {
		t.Errorf("the first frame has opcode %d, want text", opcode)
	}
}
