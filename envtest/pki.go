package envtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"snowglobe.test/internal/pki"
)

// The files of WithPKI.
const (
	caCertFile     = "ca.crt"
	caKeyFile      = "ca.key"
	accountKeyFile = "sa.key"
	accountPubFile = "sa.pub"
)

// loadPKI reads the authority and the key of service account tokens from a folder, and
// makes what is not there.
func (cp *ControlPlane) loadPKI(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("PKI: %w", err)
	}
	var err error
	if cp.authority, err = authorityIn(dir); err != nil {
		return fmt.Errorf("PKI in %s: %w", dir, err)
	}
	if cp.accountKey, err = accountKeyIn(dir); err != nil {
		return fmt.Errorf("PKI in %s: %w", dir, err)
	}
	return nil
}

func authorityIn(dir string) (*pki.Authority, error) {
	cert, certErr := os.ReadFile(filepath.Join(dir, caCertFile))
	key, keyErr := os.ReadFile(filepath.Join(dir, caKeyFile))
	noCert, noKey := errors.Is(certErr, fs.ErrNotExist), errors.Is(keyErr, fs.ErrNotExist)
	switch {
	case noCert && noKey:
		return newAuthorityIn(dir)
	case noCert != noKey:
		return nil, fmt.Errorf("%s and %s belong together: add the missing one, or remove the other to have both made", caCertFile, caKeyFile)
	case certErr != nil || keyErr != nil:
		return nil, errors.Join(certErr, keyErr)
	}
	return pki.LoadAuthority(pki.Pair{Cert: cert, Key: key})
}

func newAuthorityIn(dir string) (*pki.Authority, error) {
	authority, err := pki.NewAuthority("snowglobe")
	if err != nil {
		return nil, err
	}
	key, err := authority.KeyPEM()
	if err != nil {
		return nil, err
	}
	return authority, errors.Join(
		os.WriteFile(filepath.Join(dir, caCertFile), authority.CertPEM(), 0o644),
		os.WriteFile(filepath.Join(dir, caKeyFile), key, 0o600))
}

func accountKeyIn(dir string) (*ecdsa.PrivateKey, error) {
	content, err := os.ReadFile(filepath.Join(dir, accountKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return newAccountKeyIn(dir)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM", accountKeyFile)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give kube-apiserver's flags --service-account-key-file and --service-account-signing-key-file for a key of another kind", accountKeyFile, err)
	}
	return key, nil
}

func newAccountKeyIn(dir string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	private, err := pki.EncodeKey(key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return key, errors.Join(
		os.WriteFile(filepath.Join(dir, accountKeyFile), private, 0o600),
		os.WriteFile(filepath.Join(dir, accountPubFile), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644))
}
