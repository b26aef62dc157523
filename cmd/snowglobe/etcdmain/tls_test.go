package etcdmain

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/pki"
)

// TestRevoked refuses a certificate that a list names, and admits others.
func TestRevoked(t *testing.T) {
	authority, err := pki.NewAuthority("etcd")
	require.NoError(t, err)
	revoked, err := authority.ClientCertificate(time.Hour, "revoked")
	require.NoError(t, err)
	fine, err := authority.ClientCertificate(time.Hour, "fine")
	require.NoError(t, err)
	key, err := authority.KeyPEM()
	require.NoError(t, err)
	signer, err := tls.X509KeyPair(authority.CertPEM(), key)
	require.NoError(t, err)
	issuer := *signer.Leaf
	issuer.KeyUsage |= x509.KeyUsageCRLSign
	list, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: revoked.SerialNumber, RevocationTime: time.Now()}},
	}, &issuer, signer.PrivateKey.(crypto.Signer))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "crl")
	require.NoError(t, os.WriteFile(file, list, 0o600))
	require.ErrorContains(t, checkRevoked(file, []*x509.Certificate{revoked}), "the certificate of CN=revoked has been revoked")
	require.NoError(t, checkRevoked(file, []*x509.Certificate{fine}))
}
