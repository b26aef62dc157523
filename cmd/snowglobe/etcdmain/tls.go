package etcdmain

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// CheckTLS returns what is wrong with flags that have etcd's names and go together.
func CheckTLS(info transport.TLSInfo) error {
	switch {
	case (info.CertFile == "") != (info.KeyFile == ""):
		return errors.New("--cert-file and --key-file belong together; give both, or neither for plain text")
	case info.Empty() && (info.TrustedCAFile != "" || info.ClientCertAuth):
		return errors.New("client certificates need TLS; give --cert-file and --key-file as well")
	case info.ClientCertAuth && info.TrustedCAFile == "":
		return errors.New("--client-cert-auth needs --trusted-ca-file, the authority that signs the clients' certificates")
	}
	return nil
}

// TLS is how an etcd serves TLS, nil without files. As etcd's, it reads certificates
// anew for each connection, and asks for those of clients as soon as it has an authority.
func TLS(info transport.TLSInfo) (*tls.Config, error) {
	if info.Empty() {
		return nil, nil
	}
	config, err := info.ServerConfig()
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	// gRPC asks for h2 alone. Whoever speaks both is a client of the pages over HTTP/1.
	config.NextProtos = []string{"http/1.1", "h2"}
	if info.CRLFile != "" {
		config.VerifyConnection = func(state tls.ConnectionState) error { return checkRevoked(info.CRLFile, state.PeerCertificates) }
	}
	return config, nil
}

// checkRevoked looks certificates up in a revocation list, which is read anew.
func checkRevoked(file string, certificates []*x509.Certificate) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	list, err := x509.ParseRevocationList(content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, certificate := range certificates {
		for _, revoked := range list.RevokedCertificateEntries {
			if certificate.SerialNumber.Cmp(revoked.SerialNumber) == 0 && bytes.Equal(list.RawIssuer, certificate.RawIssuer) {
				return fmt.Errorf("the certificate of %s has been revoked", certificate.Subject)
			}
		}
	}
	return nil
}
