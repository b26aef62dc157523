package kms_test

import (
	"bytes"
	"context"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	kmsapi "k8s.io/kms/apis/v2"
	kmsservice "k8s.io/kms/pkg/service"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/kms"
)

// overMemory is upstream's client of a plugin, for one that listens in memory.
type overMemory struct {
	client  kmsapi.KeyManagementServiceClient
	timeout time.Duration
}

func (o overMemory) Status(ctx context.Context) (*kmsservice.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	r, err := o.client.Status(ctx, &kmsapi.StatusRequest{})
	return &kmsservice.StatusResponse{Version: r.GetVersion(), Healthz: r.GetHealthz(), KeyID: r.GetKeyId()}, err
}

func (o overMemory) Encrypt(ctx context.Context, uid string, plaintext []byte) (*kmsservice.EncryptResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	r, err := o.client.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: uid, Plaintext: plaintext})
	return &kmsservice.EncryptResponse{Ciphertext: r.GetCiphertext(), KeyID: r.GetKeyId(), Annotations: r.GetAnnotations()}, err
}

func (o overMemory) Decrypt(ctx context.Context, uid string, of *kmsservice.DecryptRequest) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	r, err := o.client.Decrypt(ctx, &kmsapi.DecryptRequest{Uid: uid, Ciphertext: of.Ciphertext, KeyId: of.KeyID, Annotations: of.Annotations})
	return r.GetPlaintext(), err
}

// encryption is what an API server makes of the plugin's configuration.
type encryption struct {
	t      *testing.T
	config *encryptionconfig.EncryptionConfiguration
}

// load begins an API server's encryption of secrets, which ends with the test.
func load(t *testing.T, l net.Listener, plugin *kms.Plugin) encryption {
	t.Helper()
	if memory, ok := l.(*memnet.Listener); ok {
		factory := encryptionconfig.EnvelopeKMSv2ServiceFactory
		t.Cleanup(func() { encryptionconfig.EnvelopeKMSv2ServiceFactory = factory })
		encryptionconfig.EnvelopeKMSv2ServiceFactory = func(_ context.Context, _, _ string, timeout time.Duration) (kmsservice.Service, error) {
			return overMemory{dial(t, memory), timeout}, nil
		}
	}
	content, err := plugin.EncryptionConfiguration("fake", 3*time.Second, "secrets", "widgets.example.com")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	config, err := encryptionconfig.LoadEncryptionConfig(ctx, file, false, "apiserver-0")
	require.NoError(t, err)
	require.Len(t, config.Transformers, 2)
	return encryption{t, config}
}

const object = "/registry/secrets/default/s"

func (e encryption) transformer() value.Transformer {
	return e.config.Transformers[schema.GroupResource{Resource: "secrets"}]
}

// write encrypts the secret as it would be stored.
func (e encryption) write() ([]byte, error) {
	return e.transformer().TransformToStorage(e.t.Context(), secret, value.DefaultContext(object))
}

// read decrypts what was stored, and reports whether it is to be encrypted again.
func (e encryption) read(stored []byte) (stale bool, err error) {
	plaintext, stale, err := e.transformer().TransformFromStorage(e.t.Context(), stored, value.DefaultContext(object))
	if err == nil {
		assert.Equal(e.t, string(secret), string(plaintext))
	}
	return stale, err
}

func (e encryption) health() error {
	return e.config.HealthChecks[0].Check(httptest.NewRequest("GET", "/healthz", nil).WithContext(e.t.Context()))
}

func TestAPIServer(t *testing.T) {
	everywhere(t, func(t *testing.T, l net.Listener) {
		plugin := serve(t, l, kms.Config{})
		server := load(t, l, plugin)
		require.NoError(t, server.health())
		stored, err := server.write()
		require.NoError(t, err)
		assert.True(t, bytes.HasPrefix(stored, []byte("k8s:enc:kms:v2:fake:")))
		assert.False(t, bytes.Contains(stored, secret))
		stale, err := server.read(stored)
		require.NoError(t, err)
		assert.False(t, stale)
		assert.Empty(t, plugin.Decrypt.Calls(), "it knows the key that it has made")

		restarted := load(t, l, plugin)
		_, err = restarted.read(stored)
		require.NoError(t, err)
		assert.Len(t, plugin.Decrypt.Calls(), 1)
	})
}

func TestAPIServerSeesRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		plugin := serve(t, l, kms.Config{})
		server := load(t, l, plugin)
		old, err := server.write()
		require.NoError(t, err)
		plugin.Rotate()
		time.Sleep(61 * time.Second)
		stale, err := server.read(old)
		require.NoError(t, err)
		assert.True(t, stale)
		current, err := server.write()
		require.NoError(t, err)
		stale, err = server.read(current)
		require.NoError(t, err)
		assert.False(t, stale)
		assert.Equal(t, "key-2", plugin.Encrypt.Calls()[1].Answer.KeyID)

		plugin.DropOldKeys()
		_, err = server.read(old)
		require.NoError(t, err, "it remembers the key")
		_, err = load(t, l, plugin).read(old)
		assert.ErrorContains(t, err, `there is no key "key-1"`)
	})
}

// TestAPIServerCoasts has a plugin in a bad state. The API server writes for three more
// minutes, and reads for ever.
func TestAPIServerCoasts(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*kms.Plugin)
		want  string
	}{
		"unhealthy": {func(p *kms.Plugin) { p.SetHealthz("the HSM is on fire") }, "got unexpected healthz status: the HSM is on fire"},
		"version": {func(p *kms.Plugin) {
			p.Status.Use(kms.StatusRule{Answer: p.DistortStatus(func(s *kms.StatusAnswer) { s.Version = "v3" })})
		}, "expected KMSv2 API version v2, got v3"},
		"no key id": {func(p *kms.Plugin) {
			p.Status.Use(kms.StatusRule{Answer: p.DistortStatus(func(s *kms.StatusAnswer) { s.KeyID = "" })})
		}, "keyID is empty"},
		"another key than it says": {func(p *kms.Plugin) {
			p.Encrypt.Use(kms.EncryptRule{Answer: p.DistortEncrypt(func(e *kms.EncryptAnswer) { e.KeyID = "key-9" })})
			p.Rotate()
		}, "failed to rotate DEK"},
		"slow": {func(p *kms.Plugin) { p.Status.Use(kms.StatusRule{Delay: time.Minute}) }, "DeadlineExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				plugin := serve(t, l, kms.Config{})
				server := load(t, l, plugin)
				stored, err := server.write()
				require.NoError(t, err)
				c.spoil(plugin)
				time.Sleep(70 * time.Second)
				assert.ErrorContains(t, server.health(), c.want)
				_, err = server.write()
				assert.NoError(t, err, "still")
				time.Sleep(3 * time.Minute)
				_, err = server.read(stored)
				assert.NoError(t, err)
				_, err = server.write()
				if name == "unhealthy" || name == "version" {
					assert.NoError(t, err, "upstream extends the key as long as its id stays")
				} else {
					assert.ErrorContains(t, err, "expired at")
				}
			})
		})
	}
}

func TestEncryptionConfiguration(t *testing.T) {
	l := unixSocket(t)
	plugin := serve(t, l, kms.Config{})
	_, err := plugin.EncryptionConfiguration("fake", time.Second)
	assert.ErrorContains(t, err, "name a resource to encrypt")
	content, err := plugin.EncryptionConfiguration("fake", time.Second, "secrets")
	require.NoError(t, err)
	assert.Contains(t, string(content), `endpoint: "unix://`+l.Addr().String()+`"`)

	for address, want := range map[string]string{"@abstract": "unix:///@abstract", "relative.sock": "/relative.sock\""} {
		plugin := serve(t, named{memnet.Listen(), address}, kms.Config{})
		content, err := plugin.EncryptionConfiguration("fake", time.Second, "secrets")
		require.NoError(t, err)
		assert.Contains(t, string(content), want)
		assert.Contains(t, string(content), "unix:///")
	}
}

// named is a listener with the address of a Unix socket.
type named struct {
	net.Listener
	name string
}

func (n named) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: n.name} }
