package envtest

import (
	"context"
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
	"time"

	"github.com/gofrs/flock"
	"k8s.io/client-go/util/keyutil"

	"snowglobe.test/internal/diskerr"
	"snowglobe.test/internal/pki"
)

// The files of WithPKI.
const (
	caCertFile     = "ca.crt"
	caKeyFile      = "ca.key"
	frontCertFile  = "front-proxy-ca.crt"
	frontKeyFile   = "front-proxy-ca.key"
	accountKeyFile = "sa.key"
	accountPubFile = "sa.pub"
	pkiLockFile    = "snowglobe.lock" // held by whoever makes the others
)

// pkiRetry is how often a locked folder is looked at. Making the files takes no longer.
const pkiRetry = 10 * time.Millisecond

func complete(dir string) bool {
	for _, name := range []string{caCertFile, caKeyFile, frontCertFile, frontKeyFile, accountKeyFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// pkiFile is one of the files.
type pkiFile struct {
	name    string
	content []byte
	mode    fs.FileMode
}

// writePKI writes files that belong together: all of them, or none if the disk is full.
func writePKI(dir string, files ...pkiFile) (err error) {
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", f.name, errors.Join(err, fs.ErrExist)) // a link to nowhere
		}
		part := filepath.Join(dir, f.name+".part")
		defer func() { err = errors.Join(err, remove(part)) }()
		if err := errors.Join(remove(part), writeNew(part, f.content, f.mode)); err != nil {
			return err
		}
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.Rename(path+".part", path); err != nil {
			return err
		}
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// loadPKI reads the authority and the key of service account tokens from a folder, and
// makes what is not there. Of those that do so at once, one makes it for all.
func (cp *ControlPlane) loadPKI(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("PKI: %w", diskerr.OrSame(dir, err))
	}
	if !complete(dir) { // a folder that is may be read-only
		lock := flock.New(filepath.Join(dir, pkiLockFile))
		if _, err := lock.TryLockContext(ctx, pkiRetry); err != nil {
			return fmt.Errorf("PKI: %w", diskerr.OrSame(dir, err))
		}
		defer func() { _ = lock.Close() }()
	}
	var err error
	if cp.authority, err = authorityIn(dir, "snowglobe", caCertFile, caKeyFile); err != nil {
		return fmt.Errorf("PKI in %s: %w", dir, diskerr.OrSame(dir, err))
	}
	front, err := authorityIn(dir, "front-proxy-ca", frontCertFile, frontKeyFile)
	if err != nil {
		return fmt.Errorf("PKI in %s: %w", dir, diskerr.OrSame(dir, err))
	}
	if cp.frontProxy, err = newFrontProxy(front); err != nil {
		return err
	}
	if cp.accountKey, err = accountKeyIn(dir); err != nil {
		return fmt.Errorf("PKI in %s: %w", dir, diskerr.OrSame(dir, err))
	}
	return nil
}

// authorityIn reads an authority from two files, or makes it if neither is there.
func authorityIn(dir, name, certFile, keyFile string) (*pki.Authority, error) {
	cert, certErr := os.ReadFile(filepath.Join(dir, certFile))
	key, keyErr := os.ReadFile(filepath.Join(dir, keyFile))
	noCert, noKey := errors.Is(certErr, fs.ErrNotExist), errors.Is(keyErr, fs.ErrNotExist)
	switch {
	case noCert && noKey:
		return newAuthorityIn(dir, name, certFile, keyFile)
	case noCert != noKey:
		return nil, fmt.Errorf("%s and %s belong together: add the missing one, or remove the other to have both made", certFile, keyFile)
	case certErr != nil || keyErr != nil:
		return nil, errors.Join(certErr, keyErr)
	}
	return pki.LoadAuthority(pki.Pair{Cert: cert, Key: key})
}

func newAuthorityIn(dir, name, certFile, keyFile string) (*pki.Authority, error) {
	authority, err := pki.NewAuthority(name)
	if err != nil {
		return nil, err
	}
	key, err := authority.KeyPEM()
	if err != nil {
		return nil, err
	}
	return authority, writePKI(dir, pkiFile{certFile, authority.CertPEM(), 0o644}, pkiFile{keyFile, key, 0o600})
}

// writeNew writes a file that must not be there, not even as a link to somewhere else.
func writeNew(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

func accountKeyIn(dir string) (*ecdsa.PrivateKey, error) {
	content, err := os.ReadFile(filepath.Join(dir, accountKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return newAccountKeyIn(dir)
	}
	if err != nil {
		return nil, err
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", accountKeyFile, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s has a %T, not an ECDSA key; for another kind give kube-apiserver's flags "+
			"--service-account-key-file and --service-account-signing-key-file", accountKeyFile, parsed)
	}
	return key, nil
}

func newAccountKeyIn(dir string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return key, writePKI(dir,
		pkiFile{accountKeyFile, private, 0o600},
		pkiFile{accountPubFile, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644})
}
