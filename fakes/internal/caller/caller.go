package caller

import (
	"crypto/x509"
	"fmt"
	"net/http"
)

// Caller is who calls, as the client certificate says: its common name and its
// organizations. Both are empty without one.
type Caller struct {
	User   string
	Groups []string
}

// Of returns who calls. Whether the certificate is to be trusted is another
// question.
func Of(r *http.Request) Caller {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return Caller{}
	}
	subject := r.TLS.PeerCertificates[0].Subject
	return Caller{User: subject.CommonName, Groups: subject.Organization}
}

// Authority verifies client certificates. A nil Authority trusts everybody.
type Authority struct{ pool *x509.CertPool }

// NewAuthority takes the certificates of authorities, in PEM. Without any it returns
// nil.
func NewAuthority(pem []byte) (*Authority, error) {
	if len(pem) == 0 {
		return nil, nil
	}
	a := &Authority{x509.NewCertPool()}
	if !a.pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("there is no certificate in the PEM of the authority that clients are to be signed by: pass one or none")
	}
	return a, nil
}

// Verify returns why the client of a request is not to be trusted.
func (a *Authority) Verify(r *http.Request) error {
	if a == nil {
		return nil
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return fmt.Errorf("the client has shown no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, c := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	_, err := r.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots:         a.pool,
		Intermediates: intermediates,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}
