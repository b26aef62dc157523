// Package cluster is a real etcd inside the process, of several members that can
// be stopped, restarted and cut off from each other. Clients reach them through
// unix sockets in a private folder; they reach each other through loopback ports,
// with certificates that only they have. A stopped member keeps its data for a restart; nothing outlives Stop.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/disk"
	"snowglobe.test/internal/broadcast"
	"snowglobe.test/internal/etcdlog"
	"snowglobe.test/internal/tempdir"
)

// Config of a cluster. The zero value means three members.
type Config struct {
	// Members is 3 or 5. Zero means 3. For one member use package embedded. Each takes
	// 128 MB in the temporary folder, and what is written.
	Members int
	// ElectionTimeout is how long a member waits for a heartbeat, sent ten times as
	// often, before it stands for election: 50 ms to 50 s; zero means 500 ms. Shorter
	// finds a new leader sooner, but causes needless elections on a busy machine.
	ElectionTimeout time.Duration
	// StartTimeout bounds Start. Zero means 30 s.
	StartTimeout time.Duration
}

func (c Config) validate() error {
	switch c.Members {
	case 3, 5:
	case 1:
		return errors.New("1 member is no cluster; use the embedded kind, or 3 or 5 members")
	default:
		return fmt.Errorf("%d members; a cluster has 3 or 5", c.Members)
	}
	if c.ElectionTimeout < 50*time.Millisecond || c.ElectionTimeout > 50*time.Second {
		return fmt.Errorf("election timeout %s; give one from 50ms to 50s", c.ElectionTimeout)
	}
	if c.StartTimeout < 0 {
		return fmt.Errorf("start timeout %s; give a positive one, or 0 for 30s", c.StartTimeout)
	}
	return nil
}

// Store is an etcd cluster. Make one with New. Members are named by their index,
// from 0. Its methods may be called from several goroutines at once.
type Store struct {
	cfg Config

	mu       sync.Mutex
	run      *tempdir.Dir // folder of the sockets and the data
	members  []*member
	stopping bool
	failed   chan struct{} // closed when a member has failed; made by Start
	failure  error
	watching sync.WaitGroup // goroutines in watchFailure
	// changed tells when a member starts, is cut off or rejoins: everything that waits for
	// a leader looks again.
	changed broadcast.News
}

// New validates the configuration and returns a store that is not started yet.
func New(cfg Config) (*Store, error) {
	cfg.Members = cmp.Or(cfg.Members, 3)
	cfg.ElectionTimeout = cmp.Or(cfg.ElectionTimeout, 500*time.Millisecond)
	cfg.StartTimeout = cmp.Or(cfg.StartTimeout, 30*time.Second)
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("etcd cluster: %w", err)
	}
	return &Store{cfg: cfg}, nil
}

// Start implements storage.Backend. On return all members run and have a leader.
func (s *Store) Start(ctx context.Context) error {
	timeout := fmt.Errorf("not ready within %s; StartTimeout of its Config gives it longer", s.cfg.StartTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout, timeout)
	defer cancel()
	if err := s.start(ctx); err != nil {
		return errors.Join(fmt.Errorf("start etcd cluster: %w", err), s.Stop(context.WithoutCancel(ctx)))
	}
	return nil
}

func (s *Store) start(ctx context.Context) error {
	if err := s.startMembers(ctx); err != nil {
		return err
	}
	for i := range s.cfg.Members {
		if err := s.ready(ctx, i); err != nil {
			return err
		}
	}
	_, err := s.Leader(ctx)
	return err
}

func (s *Store) startMembers(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		return errors.New("it has been started already; stop it first")
	}
	var err error
	if s.run, err = tempdir.Make("etcd"); err != nil {
		return err
	}
	s.failed, s.failure = make(chan struct{}), nil
	if err := disk.Check(s.run.Path(), s.cfg.Members); err != nil {
		return err
	}
	peers, err := newPeerTLS(s.run.Path())
	if err != nil {
		return fmt.Errorf("certificates of the peers: %w", err)
	}
	for i := range s.cfg.Members {
		m, err := newMember(i, s.run.Path(), peers)
		if err != nil {
			return err
		}
		s.members = append(s.members, m)
	}
	for _, m := range s.members {
		if err := s.startMember(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// startMember starts a member. Called with mu held.
func (s *Store) startMember(ctx context.Context, m *member) error {
	var all []string
	for _, other := range s.members {
		u := other.peerURL()
		all = append(all, other.name+"="+u.String())
	}
	if err := m.start(ctx, s.cfg, s.clientURL(m), strings.Join(all, ",")); err != nil {
		return err
	}
	server := m.server
	s.watching.Go(func() { s.watchFailure(m, server) })
	s.applyCuts()
	s.changed.Tell()
	return nil
}

// watchFailure waits until a member's server has failed or ended. The first failure of a member
// is that of the store: the members share a disk, so when one can't write, soon none can.
func (s *Store) watchFailure(m *member, server *disk.Server) {
	select {
	case <-server.Failed():
	case <-server.Ended():
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.server == server {
		m.kill()
		s.changed.Tell()
	}
	if s.failure == nil {
		s.failure = fmt.Errorf("%s of the etcd cluster: %w", m.name, server.Err())
		close(s.failed)
	}
}

// Failed implements storage.Failer.
func (s *Store) Failed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Failure implements storage.Failer: why the first member to fail did so.
func (s *Store) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// clientURL is the endpoint of a member. Its host means something only to dial, and
// is unique to this store: upstream keeps state per endpoint for the whole process.
func (s *Store) clientURL(m *member) url.URL {
	return url.URL{Scheme: "http", Host: m.name + "." + filepath.Base(s.run.Path()) + ".cluster:2379"}
}

// dial is a storage.Dialer to the members.
func (s *Store) dial(ctx context.Context, _, address string) (net.Conn, error) {
	s.mu.Lock()
	var to *socket
	for _, m := range s.members {
		if u := s.clientURL(m); u.Host == address {
			to = m.client
		}
	}
	s.mu.Unlock()
	if to == nil {
		return nil, fmt.Errorf("%s is not a member of this etcd cluster", address)
	}
	return to.dial(ctx)
}

// Client implements storage.Backend. The client spreads its calls over the members
// it can connect to, and finds a restarted member within half a second. It keeps
// calling a member that is cut off; see CutOff.
func (s *Store) Client() (*kubernetes.Client, error) {
	client, err := kubernetes.New(clientv3.Config{
		Endpoints:            s.Endpoints().URLs,
		DialKeepAliveTime:    30 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		Logger:               etcdlog.New(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return s.dial(ctx, "tcp", address)
			}),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond,
			}}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("client of the etcd cluster: %w", err)
	}
	return client, nil
}

// Endpoints implements storage.Backend: one URL for each member, by index.
func (s *Store) Endpoints() storage.Endpoints {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := storage.Endpoints{Dial: s.dial}
	for _, m := range s.members {
		u := s.clientURL(m)
		e.URLs = append(e.URLs, u.String())
	}
	return e
}

// Snapshot implements storage.Snapshotter by a copy of every key.
func (s *Store) Snapshot(ctx context.Context) (storage.Snapshot, error) {
	return storage.CopyFrom(ctx, s)
}

// Restore implements storage.Snapshotter.
func (s *Store) Restore(ctx context.Context, to storage.Snapshot, keep storage.Keep) ([]storage.Change, error) {
	return storage.RestoreCopy(ctx, s, to, keep)
}

// Stop implements storage.Backend. It kills all members and removes their data. If
// ctx ends before that is done, call it again to wait for the rest.
func (s *Store) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	var killed []kill
	for _, m := range s.members {
		killed = append(killed, m.kill())
	}
	s.mu.Unlock()
	for _, k := range killed {
		if err := k.wait(ctx); err != nil {
			return fmt.Errorf("stop etcd cluster: %w", err)
		}
	}
	s.watching.Wait()
	return s.remove()
}

// remove removes what the members left behind. Called when none runs.
func (s *Store) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		m.relay.close()
	}
	s.members, s.stopping = nil, false
	if err := s.run.Remove(); err != nil {
		return fmt.Errorf("stop etcd cluster: %w", err)
	}
	s.run = nil
	return nil
}

// String implements storage.Backend.
func (s *Store) String() string { return fmt.Sprintf("cluster of %d", s.cfg.Members) }
