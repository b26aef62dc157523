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
	"snowglobe.test/envtest/storage/external"
)

// Config of an embedded etcd. The zero value is a fast throw-away store.
type Config struct {
	// DataDir keeps the data between runs, and makes acknowledged writes durable
	// (fsync). Empty means a temporary folder without fsync, removed by Stop.
	DataDir string
	// StartTimeout bounds Start. Zero means 30 s.
	StartTimeout time.Duration
}

// Store is an embedded etcd. Make one with New.
type Store struct {
	cfg             Config
	run             string // folder of the sockets and, without DataDir, of the data
	server          *embed.Etcd
	*external.Store // after Start: by its socket
}

// New returns a store that is not started yet.
func New(cfg Config) *Store {
	cfg.StartTimeout = cmp.Or(cfg.StartTimeout, 30*time.Second)
	return &Store{cfg: cfg}
}

// Start implements storage.Backend.
func (s *Store) Start(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return errors.Join(fmt.Errorf("start embedded etcd: %w", err), s.Stop(ctx))
	}
	return nil
}

func (s *Store) start(ctx context.Context) error {
	run, err := os.MkdirTemp("", "snowglobe-etcd-")
	if err != nil {
		return err
	}
	s.run = run
	cfg := s.etcdConfig()
	if s.cfg.DataDir != "" {
		if err := os.MkdirAll(s.cfg.DataDir, 0o700); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	if s.server, err = embed.StartEtcd(cfg); err != nil {
		return fmt.Errorf("%w; is another process using data folder %q?", err, cfg.Dir)
	}
	timer := time.NewTimer(s.cfg.StartTimeout)
	defer timer.Stop()
	select {
	case <-s.server.Server.ReadyNotify():
	case err := <-s.server.Err():
		return err
	case <-timer.C:
		return fmt.Errorf("not ready within %s", s.cfg.StartTimeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	client := s.socket("client")
	s.Store, err = external.New(external.Config{URLs: []string{client.String()}})
	return err
}

func (s *Store) etcdConfig() *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = "snowglobe"
	cfg.Dir = s.cfg.DataDir
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(s.run, "data")
		cfg.UnsafeNoFsync = true
	}
	cfg.LogLevel = "panic"
	client, peer := s.socket("client"), s.socket("peer")
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

func (s *Store) socket(name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(s.run, name+".sock")}
}

// Snapshot implements storage.Snapshotter by a copy of every key.
func (s *Store) Snapshot(ctx context.Context) (storage.Snapshot, error) {
	return storage.CopyFrom(ctx, s)
}

// Restore implements storage.Snapshotter.
func (s *Store) Restore(ctx context.Context, to storage.Snapshot, keep storage.Keep) ([]storage.Change, error) {
	return storage.RestoreCopy(ctx, s, to, keep)
}

// Stop implements storage.Backend. The data stays if DataDir was set.
func (s *Store) Stop(context.Context) error {
	if s.server != nil {
		s.server.Close()
		s.server = nil
	}
	if s.run == "" {
		return nil
	}
	if err := os.RemoveAll(s.run); err != nil {
		return fmt.Errorf("stop embedded etcd: %w", err)
	}
	s.run = ""
	return nil
}

// String implements storage.Backend.
func (s *Store) String() string {
	if s.cfg.DataDir == "" {
		return "embedded"
	}
	return "embedded " + s.cfg.DataDir
}
