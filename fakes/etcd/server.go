package etcd

import (
	"cmp"
	"fmt"
	"net"
	"net/http"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/fakes/etcd/internal/client"
	"snowglobe.test/fakes/etcd/internal/keyspace"
	"snowglobe.test/fakes/etcd/internal/services"
)

// Server is an in-memory etcd with a single member. Its methods may be called
// from any goroutine.
type Server struct {
	cfg      Config
	store    *keyspace.Store
	services *services.Server
}

// New returns an empty server at revision 1.
func New(cfg Config) (*Server, error) { return start(cfg, keyspace.New) }

// start returns a server of the store that open makes.
func start(cfg Config, open func(keyspace.Config) *keyspace.Store) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Server{store: open(keyspace.Config{
		MaxRequestBytes: cfg.MaxRequestBytes, MaxTxnOps: cfg.MaxTxnOps, MinLeaseTTL: cfg.MinLeaseTTL,
		ProgressNotifyInterval: cfg.ProgressNotifyInterval, QuotaBytes: cfg.QuotaBytes,
	})}
	cfg.Endpoint = cmp.Or(cfg.Endpoint, fmt.Sprintf("memory:%p", s))
	if len(cfg.ClientURLs) == 0 {
		cfg.ClientURLs = []string{cfg.Endpoint}
	}
	s.cfg = cfg
	s.services = services.New(s.store, services.Config{
		MaxRequestBytes: cfg.MaxRequestBytes, WatchBuffer: cfg.WatchBuffer,
		Name: cfg.Name, PeerURLs: cfg.PeerURLs, ClientURLs: cfg.ClientURLs,
		HTTP: cfg.HTTP, ServerOptions: cfg.ServerOptions,
	})
	return s, nil
}

// Revision returns the current revision of the store.
func (s *Server) Revision() int64 { return s.store.Revision() }

// Client returns a new client in this process. Nothing is serialized, so keys
// and values passed to it or returned by it must not be changed afterwards.
// Closing it ends only what was started through it, and returns
// context.Canceled, as for every clientv3.Client without a connection;
// closing the server closes it too. Unlike upstream's, its Kubernetes
// interface does not use its KV: to intercept calls, wrap both.
func (s *Server) Client() *kubernetes.Client {
	return client.New(s.store, s.services.LocalConn(), s.cfg.Endpoint, s.cfg.WatchBuffer)
}

// Serve serves etcd's client API on l: over gRPC the KV, Watch, Lease, Cluster, Election,
// Lock and health services, and of Maintenance and Auth what a store in memory has, and over
// HTTP/1 /health, /livez, /readyz, /version, /metrics and /debug/vars. It returns nil when the
// server is closed, or the error that made l unusable; l and its connections
// are closed either way. It may be called for any number of listeners.
func (s *Server) Serve(l net.Listener) error {
	local := s.Client()
	defer func() { _ = local.Close() }()
	return s.services.Serve(l, local.Client)
}

// ServeHTTP answers as HTTP/1 clients on Serve's listeners are answered, for listeners of
// HTTP alone.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.services.ServeHTTP(w, r) }

// Close ends every watch, lease and gRPC connection and joins all goroutines.
// Later requests fail with "server stopped". Closing twice is fine.
func (s *Server) Close() error {
	s.store.Close()
	return nil
}
