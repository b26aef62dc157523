// Package embedded is a real single-member etcd server inside the process,
// reached through unix sockets in a private folder. It never opens a port.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/disk"
	"snowglobe.test/envtest/storage/external"
	"snowglobe.test/internal/tempdir"
)

// Config of an embedded etcd. The zero value is a fast throw-away store.
type Config struct {
	// DataDir keeps the data between runs, and makes acknowledged writes durable
	// (fsync). One store at a time may use it. It takes 128 MB and what is written.
	// Empty means a temporary folder without fsync, removed by Stop.
	DataDir string
	// StartTimeout bounds Start. Zero means 30 s.
	StartTimeout time.Duration
}

// Store is an embedded etcd. Make one with New.
type Store struct {
	cfg             Config
	run             *tempdir.Dir // folder of the sockets and, without DataDir, of the data
	lock            *disk.Lock   // of DataDir
	server          *disk.Server
	*external.Store // after Start: by its socket
}

// New returns a store that is not started yet.
func New(cfg Config) *Store {
	cfg.StartTimeout = cmp.Or(cfg.StartTimeout, 30*time.Second)
	return &Store{cfg: cfg}
}

// Start implements storage.Backend. It refuses a data folder that another etcd uses, and a
// disk without room for one.
func (s *Store) Start(ctx context.Context) error {
	timeout := fmt.Errorf("not ready within %s; StartTimeout of its Config (up and conformance: --start-timeout) gives it longer", s.cfg.StartTimeout)
	starting, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout, timeout)
	defer cancel()
	if err := s.start(starting); err != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUp)
		defer cancel()
		return errors.Join(fmt.Errorf("start embedded etcd: %w", err), s.Stop(stopping))
	}
	return nil
}

// giveUp is how long a failed Start waits for what it began.
const giveUp = 10 * time.Second

func (s *Store) start(ctx context.Context) error {
	var err error
	if s.run, err = tempdir.Make("etcd"); err != nil {
		return err
	}
	cfg := s.etcdConfig()
	if s.lock, err = disk.Use(cfg.Dir); err != nil {
		return err
	}
	if err := disk.Check(cfg.Dir, 1); err != nil {
		return err
	}
	if s.server, err = disk.Start(ctx, disk.Config{Etcd: cfg}); err != nil {
		return err
	}
	select {
	case <-s.server.Etcd().Server.ReadyNotify():
	case err := <-s.server.Etcd().Err():
		return err
	case <-s.server.Failed():
		return s.server.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// etcd makes its sockets by the umask.
	if err := errors.Join(os.Chmod(s.socket("client"), 0o600), os.Chmod(s.socket("peer"), 0o600)); err != nil {
		return err
	}
	client := url.URL{Scheme: "unix", Path: s.socket("client")}
	s.Store, err = external.New(external.Config{URLs: []string{client.String()}})
	return err
}

func (s *Store) etcdConfig() *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = "snowglobe"
	cfg.Dir = s.cfg.DataDir
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(s.run.Path(), "data")
		cfg.UnsafeNoFsync = true
	}
	// etcd takes the client's socket from Path and the peer's from Host. A peer's URL
	// without Host is an abstract socket, where any user of the machine can connect.
	client := url.URL{Scheme: "unix", Path: s.socket("client")}
	peer := url.URL{Scheme: "unix", Host: s.socket("peer")}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	// A restarted member must find itself in the cluster it persisted, so it
	// advertises the same peer address in every run. Nothing ever dials it.
	advertised := url.URL{Scheme: "http", Host: "localhost:2380"}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{advertised}
	cfg.InitialCluster = cfg.Name + "=" + advertised.String()
	// A single member elects itself, so it need not wait for others.
	cfg.TickMs, cfg.ElectionMs = 10, 100
	return cfg
}

func (s *Store) socket(name string) string { return filepath.Join(s.run.Path(), name+".sock") }

// Snapshot implements storage.Snapshotter by a copy of every key.
func (s *Store) Snapshot(ctx context.Context) (storage.Snapshot, error) {
	return storage.CopyFrom(ctx, s)
}

// Restore implements storage.Snapshotter.
func (s *Store) Restore(ctx context.Context, to storage.Snapshot, keep storage.Keep) ([]storage.Change, error) {
	return storage.RestoreCopy(ctx, s, to, keep)
}

// Failed implements storage.Failer.
func (s *Store) Failed() <-chan struct{} { return s.server.Failed() }

// Failure implements storage.Failer.
func (s *Store) Failure() error { return s.server.Err() }

// Stop implements storage.Backend. The data stays if DataDir was set. If ctx ends before etcd
// has, call it again to wait for the rest.
func (s *Store) Stop(ctx context.Context) error {
	if s.server != nil {
		err := disk.AwaitEnd(ctx, s.server.End(false), "stop embedded etcd: it is still stopping")
		if err != nil {
			return err
		}
	}
	s.lock.Release()
	s.lock = nil
	if err := s.run.Remove(); err != nil {
		return fmt.Errorf("stop embedded etcd: %w", err)
	}
	s.run = nil
	return nil
}

// String implements storage.Backend.
func (s *Store) String() string {
	if s.cfg.DataDir == "" {
		return "embedded"
	}
	return "embedded " + s.cfg.DataDir
}
