// Package pki makes the certificates of one control plane: its own authority, a
// serving certificate and client certificates. All are ECDSA P-256, because generating
// RSA keys takes a noticeable part of a boot. It never writes a file.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// Validity is how long every certificate is valid, from an hour ago.
const Validity = 10 * 365 * 24 * time.Hour

// Pair is a certificate and its key, PEM encoded.
type Pair struct{ Cert, Key []byte }

// Authority signs the certificates of one control plane.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// NewAuthority makes a self-signed authority with a random key.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of authority %q: %w", name, err)
	}
	template := template(pkix.Name{CommonName: name})
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate of authority %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate of authority %q: %w", name, err)
	}
	return &Authority{cert: cert, key: key, pem: encode(der)}, nil
}

// LoadAuthority makes an authority of its certificate and its key, as CertPEM and KeyPEM
// return them.
func LoadAuthority(pair Pair) (*Authority, error) {
	both, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	key, ok := both.PrivateKey.(*ecdsa.PrivateKey)
	switch {
	case !ok:
		return nil, fmt.Errorf("authority: the key is a %T; only ECDSA keys can be used", both.PrivateKey)
	case !both.Leaf.IsCA:
		return nil, fmt.Errorf("authority: the certificate of %s is not of an authority", both.Leaf.Subject)
	}
	return &Authority{cert: both.Leaf, key: key, pem: pair.Cert}, nil
}

// CertPEM returns the authority's certificate.
func (a *Authority) CertPEM() []byte { return a.pem }

// KeyPEM returns the authority's key.
func (a *Authority) KeyPEM() ([]byte, error) { return keyutil.MarshalPrivateKeyToPEM(a.key) }

// Serving returns a serving certificate for hosts, each a DNS name or an IP.
func (a *Authority) Serving(hosts ...string) (Pair, error) {
	template := template(pkix.Name{CommonName: "kube-apiserver"})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.sign(template)
}

// Certify returns a serving certificate for hosts, to serve with, and with it the authority's own.
func (a *Authority) Certify(hosts ...string) (serving tls.Certificate, ca []byte, err error) {
	pair, err := a.Serving(hosts...)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serving, err = tls.X509KeyPair(pair.Cert, pair.Key)
	return serving, a.pem, err
}

// Client returns a client certificate that authenticates as user in groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	template := template(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// ClientFor returns a client certificate that is valid from now on, for as long as validity
// says.
func (a *Authority) ClientFor(validity time.Duration, user string, groups ...string) (Pair, error) {
	template := template(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.NotBefore = time.Now()
	template.NotAfter = template.NotBefore.Add(validity)
	return a.sign(template)
}

// ClientCertificate is ClientFor without the key, which is thrown away: it is for servers
// that are handed certificates without a handshake.
func (a *Authority) ClientCertificate(validity time.Duration, user string, groups ...string) (*x509.Certificate, error) {
	pair, err := a.ClientFor(validity, user, groups...)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(pair.Cert)
	return x509.ParseCertificate(block.Bytes)
}

func (a *Authority) sign(template *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("key for %q: %w", template.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate for %q: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, fmt.Errorf("key for %q: %w", template.Subject.CommonName, err)
	}
	return Pair{Cert: encode(der), Key: keyPEM}, nil
}

func template(subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          serial.Add(serial, big.NewInt(1)),
		Subject:               subject,
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(Validity),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
	}
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
