package envtest

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
)

// trusted returns what clients of a listener have to trust, in PEM: the control plane's authority
// and, with --tls-cert-file, the certificates in it.
func (cp *ControlPlane) trusted() ([]byte, error) {
	theirs, err := certutil.EncodeCertificates(cp.servingCertificate()...)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file: %w", err)
	}
	return slices.Concat(cp.authority.CertPEM(), theirs), nil
}

// servingCertificate is that of --tls-cert-file, with what follows it, if there is one.
func (cp *ControlPlane) servingCertificate() []*x509.Certificate {
	if certificates := cp.serving.Load(); certificates != nil {
		return *certificates
	}
	return nil
}

// servedTo is how a client knows the server at a host.
func (cp *ControlPlane) servedTo(host string) (rest.TLSClientConfig, error) {
	trusted, err := cp.trusted()
	return rest.TLSClientConfig{CAData: trusted, ServerName: cp.nameFor(host)}, err
}

// nameFor is a name that the server's certificate is for if it is not for a host; "" if it is, as
// the control plane's own are.
func (cp *ControlPlane) nameFor(host string) string {
	certificates := cp.servingCertificate()
	if len(certificates) == 0 || certificates[0].VerifyHostname(host) == nil {
		return ""
	}
	switch leaf := certificates[0]; {
	case len(leaf.DNSNames) > 0:
		return strings.Replace(leaf.DNSNames[0], "*", "kubernetes", 1)
	case len(leaf.IPAddresses) > 0:
		return leaf.IPAddresses[0].String()
	}
	return ""
}

// upgradeTLS is the client side of in-memory TLS; the request's token has the user.
func (cp *ControlPlane) upgradeTLS() (*tls.Config, error) {
	const host = "kubernetes"
	trusted, err := cp.trusted()
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(trusted) {
		return nil, errors.New("the control plane's own CA is not a certificate")
	}
	return &tls.Config{RootCAs: roots, ServerName: cmp.Or(cp.nameFor(host), host), MinVersion: tls.VersionTLS12}, nil
}
