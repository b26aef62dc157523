package envtest_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/embedded"
)

// TestWithPKI starts a control plane twice on one data folder: the certificate and the
// token of the first run are good in the second.
func TestWithPKI(t *testing.T) {
	data, keys := t.TempDir(), filepath.Join(t.TempDir(), "pki")
	start := func(t *testing.T) *envtest.ControlPlane {
		return envtest.Start(t, envtest.WithPKI(keys), envtest.WithListener("127.0.0.1:0"), envtest.WithStore(embedded.New(embedded.Config{DataDir: data})))
	}
	var byCertificate *rest.Config
	var token string
	t.Run("first", func(t *testing.T) {
		cp := start(t)
		byCertificate = cp.Config(envtest.User("joe", "system:masters"), envtest.Remote())
		core := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1()
		_, err := core.ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		request, err := core.ServiceAccounts("default").CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		require.NoError(t, err)
		token = request.Status.Token
	})
	t.Run("second", func(t *testing.T) {
		cp := start(t)
		byCertificate.Host = cp.Config(envtest.Remote()).Host
		byToken := rest.AnonymousClientConfig(byCertificate)
		byToken.BearerToken = token
		for config, want := range map[*rest.Config]string{byCertificate: "joe", byToken: "system:serviceaccount:default:robot"} {
			review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if assert.NoError(t, err, want) {
				assert.Equal(t, want, review.Status.UserInfo.Username)
			}
		}
	})
	for file, mode := range map[string]os.FileMode{"ca.crt": 0o644, "ca.key": 0o600, "front-proxy-ca.crt": 0o644, "front-proxy-ca.key": 0o600, "sa.key": 0o600, "sa.pub": 0o644} {
		info, err := os.Stat(filepath.Join(keys, file))
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode(), file)
	}
}

// TestWithPKIRefuses names the file that is wrong, and leaves it alone.
func TestWithPKIRefuses(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	other := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	for want, files := range map[string]map[string]string{
		"ca.crt and ca.key belong together":                         {"ca.key": "key"},
		"failed to find any PEM data":                               {"ca.crt": "cert", "ca.key": "key"},
		"front-proxy-ca.crt and front-proxy-ca.key belong together": {"front-proxy-ca.crt": "cert"},
		"sa.key: data does not contain":                             {"sa.key": "key"},
		"sa.key has a ed25519.PrivateKey, not an ECDSA key; for":    {"sa.key": other},
	} {
		dir := t.TempDir()
		for name, content := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
		_, err := envtest.Launch(t.Context(), envtest.WithPKI(dir))
		assert.ErrorContains(t, err, want)
		for name, content := range files {
			found, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			assert.Equal(t, content, string(found))
		}
	}
}

// TestWithPKIFollowsNoLink leaves a link for a key in the folder, as another user might who
// can write there.
func TestWithPKIFollowsNoLink(t *testing.T) {
	for _, name := range []string{"ca.key", "front-proxy-ca.key", "sa.key"} {
		dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, name)))
		_, err := envtest.Launch(t.Context(), envtest.WithPKI(dir))
		require.ErrorIs(t, err, os.ErrExist, name)
		require.NoFileExists(t, elsewhere)
	}
}
