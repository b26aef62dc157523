package envtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"snowglobe.test/internal/pki"
)

// users are those who may authenticate by a token of the harness.
type users struct {
	mu     sync.Mutex
	tokens map[string]user.Info
}

// AuthenticateToken implements authenticator.Token.
func (u *users) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	info, ok := u.tokens[token]
	if !ok {
		return nil, false, nil
	}
	return &authenticator.Response{User: info}, true, nil
}

func (u *users) add(name string, groups []string) (token string) {
	token = rand.Text()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tokens[token] = &user.DefaultInfo{Name: name, Groups: slices.Clone(groups)}
	return token
}

// makeAuthority makes, or finds in the folder of WithPKI, what credentials are made with.
func (cp *ControlPlane) makeAuthority() error {
	cp.users = &users{tokens: map[string]user.Info{}}
	if cp.cfg.pki != "" {
		return cp.loadPKI(cp.cfg.pki)
	}
	authority, err := pki.NewAuthority("snowglobe " + cp.name)
	if err != nil {
		return err
	}
	cp.authority = authority
	if cp.accountKey == nil { // else it is a fork's
		cp.accountKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return err
}

// AddUser returns a configuration that authenticates a user in groups (and in
// system:authenticated) with a random token, inside the process. RBAC decides what
// the user may do.
func (cp *ControlPlane) AddUser(name string, groups ...string) *rest.Config {
	return cp.client.AddUser(name, groups...)
}

// AddCertificate returns a configuration that authenticates a user in groups (and in
// system:authenticated) with a client certificate, inside the process. The certificate is
// valid from now on for the duration of validity; requests that upgrade go on without a
// certificate. RBAC decides what the user may do.
func (cp *ControlPlane) AddCertificate(validity time.Duration, name string, groups ...string) (*rest.Config, error) {
	return cp.client.AddCertificate(validity, name, groups...)
}

// RemoteConfig returns a configuration for the server's TLS listener (WithListener)
// that authenticates a user in groups with a client certificate.
func (s *Server) RemoteConfig(name string, groups ...string) (*rest.Config, error) {
	if !s.hasPort {
		return nil, fmt.Errorf("configuration of %q: the control plane has no TLS listener; start it WithListener", name)
	}
	pair, err := s.cp.authority.Client(name, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: "https://" + s.addr.String(),
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: s.cp.authority.CertPEM(), CertData: pair.Cert, KeyData: pair.Key,
		},
	}, nil
}
