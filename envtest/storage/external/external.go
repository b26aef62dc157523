// Package external is an etcd that the caller runs, given by its endpoints. It
// never starts, stops or wipes that etcd.
package external

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/internal/etcdlog"
)

// Config names an etcd. URLs is required, for example "http://127.0.0.1:2379".
// CertFile and KeyFile go together.
type Config struct {
	URLs     []string
	CertFile string
	KeyFile  string
	CAFile   string
	// DialTimeout bounds the first contact. Zero means 5 s.
	DialTimeout time.Duration
	// Logger takes what etcd's client logs. Nil means the control plane's log.
	Logger *zap.Logger
}

// Store is an etcd given by its endpoints.
type Store struct{ cfg Config }

// New checks the configuration and returns the store; nothing is dialed yet.
func New(cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("external store: %w", err)
	}
	cfg.DialTimeout = cmp.Or(cfg.DialTimeout, 5*time.Second)
	return &Store{cfg: cfg}, nil
}

func (c Config) validate() error {
	if len(c.URLs) == 0 {
		return errors.New("no endpoint given; name at least one, like http://127.0.0.1:2379")
	}
	for _, endpoint := range c.URLs {
		u, err := url.Parse(endpoint)
		if err != nil {
			return fmt.Errorf("endpoint %q: %w", endpoint, err)
		}
		if u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "unix" || u.Host+u.Path == "" {
			return fmt.Errorf("endpoint %q is not an etcd URL; write it like http://127.0.0.1:2379", endpoint)
		}
		if u.Scheme != "https" && c.CertFile+c.KeyFile+c.CAFile != "" {
			return fmt.Errorf("endpoint %q is plain text, but TLS files are given; write it with https://, or leave the files out", endpoint)
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("a client certificate needs both a certificate file and a key file")
	}
	return nil
}

// Start implements storage.Backend: it asks the etcd for its status once.
func (s *Store) Start(ctx context.Context) error {
	client, err := s.Client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	asking, cancel := context.WithTimeout(ctx, s.cfg.DialTimeout)
	defer cancel()
	if _, err := client.KV.Get(asking, "snowglobe/preflight"); err != nil {
		why := s.Probe(ctx)
		if why == nil {
			why = fmt.Errorf("%s: %w; is that an etcd?", s, err)
		}
		return fmt.Errorf("external store: no answer within %s (DialTimeout, or a third of --start-timeout, gives it longer) from %w", s.cfg.DialTimeout, why)
	}
	return nil
}

// Client implements storage.Backend: one gRPC connection to each answering endpoint.
func (s *Store) Client() (*kubernetes.Client, error) {
	secure, err := s.tls()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.New(clientv3.Config{
		Endpoints:            s.cfg.URLs,
		TLS:                  secure,
		DialTimeout:          s.cfg.DialTimeout,
		DialKeepAliveTime:    30 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		Logger:               cmp.Or(s.cfg.Logger, etcdlog.New()),
	})
	if err != nil {
		return nil, fmt.Errorf("external store %s: %w", s, err)
	}
	return client, nil
}

// tls returns the TLS configuration from the files, nil if there are none.
func (s *Store) tls() (*tls.Config, error) {
	if s.cfg.CertFile+s.cfg.CAFile == "" {
		return nil, nil
	}
	cfg, err := transport.TLSInfo{CertFile: s.cfg.CertFile, KeyFile: s.cfg.KeyFile, TrustedCAFile: s.cfg.CAFile}.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("external store: TLS files: %w", err)
	}
	return cfg, nil
}

// Endpoints implements storage.Backend.
func (s *Store) Endpoints() storage.Endpoints {
	return storage.Endpoints{URLs: s.cfg.URLs, CertFile: s.cfg.CertFile, KeyFile: s.cfg.KeyFile, CAFile: s.cfg.CAFile}
}

// Stop implements storage.Backend; the etcd keeps running.
func (s *Store) Stop(context.Context) error { return nil }

// String implements storage.Backend.
func (s *Store) String() string { return strings.Join(s.cfg.URLs, ",") }
