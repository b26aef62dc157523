package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/transport"

	"snowglobe.test/internal/pki"
)

// peerTLS is how the members of one store know each other: by certificates of an
// authority that no other process has.
type peerTLS struct {
	files  transport.TLSInfo // of a member that connects
	server *tls.Config       // of the relays
}

// newPeerTLS makes an authority, and writes what members connect with to a folder.
func newPeerTLS(folder string) (*peerTLS, error) {
	authority, err := pki.NewAuthority("etcd peers")
	if err != nil {
		return nil, err
	}
	certificate, ca, err := authority.Certify("127.0.0.1")
	if err != nil {
		return nil, err
	}
	client, err := authority.Client("peer")
	if err != nil {
		return nil, err
	}
	members := x509.NewCertPool()
	members.AppendCertsFromPEM(ca)
	p := &peerTLS{
		files: transport.TLSInfo{
			CertFile: filepath.Join(folder, "peer.crt"), KeyFile: filepath.Join(folder, "peer.key"), TrustedCAFile: filepath.Join(folder, "ca.crt"),
		},
		server: &tls.Config{
			Certificates: []tls.Certificate{certificate}, ClientCAs: members, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		},
	}
	return p, errors.Join(
		os.WriteFile(p.files.CertFile, client.Cert, 0o600),
		os.WriteFile(p.files.KeyFile, client.Key, 0o600),
		os.WriteFile(p.files.TrustedCAFile, ca, 0o600))
}
