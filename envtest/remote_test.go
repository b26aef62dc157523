package envtest_test

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/pki"
)

// TestKubeconfig reaches the server through TLS by the file it wrote.
func TestKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	cp := envtest.Start(t, envtest.WithKubeconfig(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "the kubeconfig's mode is %s", info.Mode())
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	assert.Equal(t, envtest.AdminUser, userOf(t, config), "who the kubeconfig logs in as")
	jane := cp.Config(envtest.User("jane", "developers"), envtest.Remote())
	assert.Equal(t, "jane", userOf(t, jane), "who the client certificate logs in as")
	stranger := rest.AnonymousClientConfig(jane)
	stranger.CAData = nil
	_, err = kubernetes.NewForConfigOrDie(stranger).Discovery().ServerVersion()
	assert.Error(t, err, "a client without the CA trusts the server")
	require.NoError(t, cp.Stop(t.Context()))
	_, err = os.Stat(path)
	assert.ErrorIs(t, err, fs.ErrNotExist, "Stop left the kubeconfig")
}

// TestServingCertificate has clients trust a certificate of somebody's own, that does not hold for
// the address that they ask.
func TestServingCertificate(t *testing.T) {
	authority, err := pki.NewAuthority("somebody")
	require.NoError(t, err)
	for _, names := range [][]string{{"api.example"}, {"*.api.example", "127.0.0.1"}, {"192.0.2.7"}} {
		dir := t.TempDir()
		pair, err := authority.Serving(names...)
		require.NoError(t, err)
		cert := writeFile(t, filepath.Join(dir, "tls.crt"), string(pair.Cert)+string(pair.Key)) // some keep both in one file
		path := filepath.Join(dir, "kubeconfig")
		cp := envtest.Start(t, envtest.WithKubeconfig(path), envtest.WithFlags("--tls-cert-file="+cert, "--tls-private-key-file="+cert))
		assert.Equal(t, "jane", userOf(t, cp.Config(envtest.User("jane"), envtest.Remote())))
		config, err := clientcmd.BuildConfigFromFlags("", path)
		require.NoError(t, err)
		assert.Equal(t, envtest.AdminUser, userOf(t, config))
		assert.NotContains(t, string(config.CAData), "KEY")
		upgrades(t, cp)
	}
}

func userOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.UserInfo.Username
}

// TestRemoteNeedsListener says what is missing.
func TestRemoteNeedsListener(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		jane := kubernetes.NewForConfigOrDie(cp.Config(envtest.User("jane"), envtest.Remote()))
		_, err := jane.Discovery().ServerVersion()
		assert.ErrorContains(t, err, "start it WithListener", "a control plane without a port answers a remote client")
	})
}

// TestUpgrade opens a watch as a WebSocket, which needs a real connection: it
// gets one in memory, without a port.
func TestUpgrade(t *testing.T) {
	upgrades(t, envtest.Start(t))
}

func upgrades(t *testing.T, cp *envtest.ControlPlane) {
	t.Helper()
	transport, err := rest.TransportFor(cp.Config())
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cp.Config().Host+"/api/v1/namespaces?watch=true", nil)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Origin": cp.Config().Host,
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "c25vd2dsb2JlIHNub3dnbA==",
	} {
		req.Header.Set(name, value)
	}
	response, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode, "the upgrade was answered %s", response.Status)
	frame := make([]byte, 2)
	_, err = io.ReadFull(response.Body, frame)
	require.NoError(t, err)
	assert.Equal(t, byte(1), frame[0]&0x0f, "the opcode of the first frame; want text")
}
