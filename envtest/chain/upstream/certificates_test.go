package upstream

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"snowglobe.test/internal/pki"
)

// heard counts what a listener is told.
type heard int

// Enqueue implements dynamiccertificates.Listener.
func (h *heard) Enqueue() { *h++ }

// TestPolledCertificates replaces files in virtual time: by a file that is no certificate, which is
// not followed, and by another certificate. Upstream's own Run makes virtual time stand still.
func TestPolledCertificates(t *testing.T) {
	var pairs []pki.Pair
	for range 2 {
		authority, err := pki.NewAuthority("ca")
		require.NoError(t, err)
		pair, err := authority.Serving("api.example")
		require.NoError(t, err)
		pairs = append(pairs, pair)
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write := func(t *testing.T, pair pki.Pair) {
		require.NoError(t, os.WriteFile(cert, pair.Cert, 0o600))
		require.NoError(t, os.WriteFile(key, pair.Key, 0o600))
	}
	of := func(pair dynamiccertificates.CertKeyContentProvider) func() string {
		return func() string { cert, _ := pair.CurrentCertKeyContent(); return string(cert) }
	}
	for name, open := range map[string]func(t *testing.T) (runner any, content func() string){
		"pair": func(t *testing.T) (any, func() string) {
			inner, err := dynamiccertificates.NewDynamicServingContentFromFiles("test", cert, key)
			require.NoError(t, err)
			pair := PollPair(inner, time.Second)
			return pair, of(pair)
		},
		"SNI": func(t *testing.T) (any, func() string) {
			inner, err := dynamiccertificates.NewDynamicSNIContentFromFiles("test", cert, key, "api.example")
			require.NoError(t, err)
			pair := PollSNI(inner, time.Second)
			assert.Equal(t, []string{"api.example"}, pair.SNINames())
			return pair, of(pair)
		},
		"authority": func(t *testing.T) (any, func() string) {
			inner, err := dynamiccertificates.NewDynamicCAContentFromFile("test", cert)
			require.NoError(t, err)
			ca := PollCA(dynamiccertificates.NewUnionCAContentProvider(inner), time.Second)
			return ca, func() string { return string(ca.CurrentCABundleContent()) + "\n" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, pairs[0])
			synctest.Test(t, func(t *testing.T) {
				runner, content := open(t)
				var told heard
				runner.(dynamiccertificates.Notifier).AddListener(&told)
				go runner.(dynamiccertificates.ControllerRunner).Run(t.Context(), 1)
				write(t, pki.Pair{Cert: []byte("no certificate"), Key: pairs[1].Key})
				time.Sleep(2 * time.Second)
				assert.Equal(t, string(pairs[0].Cert), content())
				assert.Zero(t, told)
				write(t, pairs[1])
				time.Sleep(time.Second)
				synctest.Wait()
				assert.Equal(t, string(pairs[1].Cert), content())
				assert.Equal(t, heard(1), told)
			})
		})
	}
}

// TestPolledWithoutFiles leaves alone what follows no file.
func TestPolledWithoutFiles(t *testing.T) {
	authority, err := pki.NewAuthority("ca")
	require.NoError(t, err)
	ca, err := dynamiccertificates.NewStaticCAContent("test", authority.CertPEM())
	require.NoError(t, err)
	assert.Equal(t, ca, PollCA(ca, time.Second))
	assert.Nil(t, PollCA(nil, time.Second))
	assert.Nil(t, PollPair(nil, time.Second))
}
