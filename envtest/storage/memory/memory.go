// Package memory is the in-memory store: an etcd without sockets, files or
// serialization. It never persists anything: Stop forgets it all.
package memory

import (
	"context"
	"errors"
	"fmt"
	"net"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/fakes/etcd"
)

// Store is an in-memory etcd. Make one with New.
type Store struct {
	name     string
	from     *etcd.Snapshot // what it begins with; nil means empty
	server   *etcd.Server
	listener *memnet.Listener
	served   chan struct{} // closed when the listener is served no more
}

// New returns a store that is not started yet, with the name in its URLs. Stores
// side by side need their own: upstream has one compactor and feature check per URL.
func New(name string) *Store { return &Store{name: name} }

// Start implements storage.Backend.
func (s *Store) Start(context.Context) error {
	server, err := s.open()
	if err != nil {
		return fmt.Errorf("start in-memory store: %w", err)
	}
	s.server, s.listener, s.served = server, memnet.Listen(), make(chan struct{})
	go func() {
		defer close(s.served)
		_ = s.server.Serve(s.listener) // it ends with Stop, which is no error
	}()
	return nil
}

func (s *Store) open() (*etcd.Server, error) {
	if s.from != nil {
		return s.from.Fork(etcd.Config{})
	}
	return etcd.New(etcd.Config{})
}

// Snapshot implements storage.Snapshotter, in constant time.
func (s *Store) Snapshot(context.Context) (storage.Snapshot, error) {
	if s.server == nil {
		return nil, errors.New("snapshot of in-memory store: it has not been started")
	}
	return s.server.Snapshot(), nil
}

// Restore implements storage.Snapshotter. No other write comes in between.
func (s *Store) Restore(_ context.Context, to storage.Snapshot, keep storage.Keep) ([]storage.Change, error) {
	snapshot, err := etcdSnapshot(to)
	if err != nil {
		return nil, fmt.Errorf("restore in-memory store: %w", err)
	}
	if s.server == nil {
		return nil, errors.New("restore in-memory store: it has not been started")
	}
	writes, err := s.server.Rewind(snapshot, keep)
	if err != nil {
		return nil, fmt.Errorf("restore in-memory store: %w", err)
	}
	changes := make([]storage.Change, len(writes))
	for i, change := range writes {
		changes[i] = storage.Change(change)
	}
	return changes, nil
}

// Fork implements storage.Forker.
func (s *Store) Fork(name string, from storage.Snapshot) (storage.Backend, error) {
	snapshot, err := etcdSnapshot(from)
	if err != nil {
		return nil, fmt.Errorf("fork in-memory store: %w", err)
	}
	return &Store{name: name, from: snapshot}, nil
}

func etcdSnapshot(snapshot storage.Snapshot) (*etcd.Snapshot, error) {
	if ours, ok := snapshot.(*etcd.Snapshot); ok {
		return ours, nil
	}
	return nil, fmt.Errorf("the snapshot, a %T, was taken by another kind of store", snapshot)
}

// Server returns the etcd behind the store, nil before Start.
func (s *Store) Server() *etcd.Server { return s.server }

// Client implements storage.Backend. It calls the etcd directly, without gRPC.
func (s *Store) Client() (*kubernetes.Client, error) { return s.server.Client(), nil }

// Endpoints implements storage.Backend: gRPC on an in-memory listener.
func (s *Store) Endpoints() storage.Endpoints {
	return storage.Endpoints{
		URLs: []string{"http://" + s.name + ".memory:2379"},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.listener.DialContext(ctx) },
	}
}

// Stop implements storage.Backend.
func (s *Store) Stop(context.Context) error {
	if s.server == nil {
		return nil
	}
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("stop in-memory store: %w", err)
	}
	_ = s.listener.Close()
	<-s.served
	return nil
}

// String implements storage.Backend.
func (s *Store) String() string { return "memory" }
