package envtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/pki"
	"snowglobe.test/internal/redact"
)

// users are those who may authenticate by a token of the harness.
type users struct {
	mu     sync.Mutex
	tokens map[string]user.Info
	admin  string // the token of trace.AdminUser
}

// renew makes all tokens useless, and a new one for the cluster admin.
func (u *users) renew() {
	u.mu.Lock()
	defer u.mu.Unlock()
	clear(u.tokens)
	u.admin = u.addLocked(newCredentials(nil))
}

// adminToken is that of trace.AdminUser.
func (u *users) adminToken() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.admin
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

func (u *users) add(who credentials) (token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.addLocked(who)
}

func (u *users) addLocked(who credentials) (token string) {
	token = redact.TokenPrefix + rand.Text()
	u.tokens[token] = &user.DefaultInfo{Name: who.name, Groups: slices.Clone(who.groups)}
	return token
}

// makeAuthority makes, or finds in the folder of WithPKI, what credentials are made with.
func (cp *ControlPlane) makeAuthority(ctx context.Context) error {
	cp.users = &users{tokens: map[string]user.Info{}}
	if cp.cfg.pki != "" {
		return cp.loadPKI(ctx, cp.cfg.pki)
	}
	authority, err := pki.NewAuthority("snowglobe " + cp.name)
	if err != nil {
		return err
	}
	front, err := pki.NewAuthority("front-proxy-ca")
	if err != nil {
		return err
	}
	cp.authority = authority
	if cp.frontProxy, err = newFrontProxy(front); err != nil {
		return err
	}
	if cp.accountKey == nil { // else it is a fork's
		cp.accountKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return err
}

// newFrontProxy makes the aggregator's certificate.
func newFrontProxy(authority *pki.Authority) (*chain.FrontProxy, error) {
	client, err := authority.Client(chain.FrontProxyName)
	if err != nil {
		return nil, err
	}
	return &chain.FrontProxy{Authority: authority.CertPEM(), Client: chain.KeyPair(client)}, nil
}

// A ConfigOption says whose requests those of a client configuration are, and how they
// travel. By default they are a cluster admin's, with a random token, inside the process.
type ConfigOption func(*credentials)

// credentials are what a client configuration is made of.
type credentials struct {
	name      string
	groups    []string
	isAdmin   bool // no other user was named
	certified bool // by a certificate, not by a token
	validity  time.Duration
	remote    bool
}

func newCredentials(opts []ConfigOption) credentials {
	who := credentials{name: trace.AdminUser, groups: []string{user.SystemPrivilegedGroup}, isAdmin: true}
	for _, opt := range opts {
		opt(&who)
	}
	return who
}

// clientPair makes a client certificate, which is valid for long unless Certificate says else.
func (cp *ControlPlane) clientPair(who credentials) (pki.Pair, error) {
	if who.certified {
		return cp.authority.ClientFor(who.validity, who.name, who.groups...)
	}
	return cp.authority.Client(who.name, who.groups...)
}

// User is for a user in groups (and in system:authenticated). RBAC decides what the user
// may do.
func User(name string, groups ...string) ConfigOption {
	return func(c *credentials) { c.name, c.groups, c.isAdmin = name, groups, false }
}

// Certificate is for a client certificate, not a token. It is valid from now on for the
// duration of validity; inside the process, requests that upgrade go on without it.
func Certificate(validity time.Duration) ConfigOption {
	return func(c *credentials) { c.certified, c.validity = true, validity }
}

// Remote is for the TLS listener (WithListener) of the server, or of the first if there are
// several, with a client certificate. Without a listener, requests fail and say so.
func Remote() ConfigOption { return func(c *credentials) { c.remote = true } }

// Config returns the configuration of a client, by default of a cluster admin inside the
// process, trace.AdminUser: its requests call the handler chain or, for upgrades, go through TLS
// in memory. With several servers, the first that accepts requests gets them until it is gone.
func (cp *ControlPlane) Config(opts ...ConfigOption) *rest.Config { return cp.client.Config(opts...) }
