// Package memory is the in-memory store: an etcd without sockets, files or
// serialization. It never persists anything: Stop forgets it all.
package memory

import (
	"context"
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
	server   *etcd.Server
	listener *memnet.Listener
	served   chan error
}

// New returns a store that is not started yet. The name is part of its
// endpoints' URLs. Upstream keeps one compactor and one feature check for each
// distinct URL in a process, so stores side by side need names of their own.
func New(name string) *Store { return &Store{name: name} }

// Start implements storage.Backend.
func (s *Store) Start(context.Context) error {
	server, err := etcd.New(etcd.Config{})
	if err != nil {
		return fmt.Errorf("start in-memory store: %w", err)
	}
	s.server, s.listener, s.served = server, memnet.Listen(), make(chan error, 1)
	go func() { s.served <- s.server.Serve(s.listener) }()
	return nil
}

// Server returns the etcd behind the store, nil before Start.
func (s *Store) Server() *etcd.Server { return s.server }

// Client implements storage.Backend: the in-process door, no gRPC.
func (s *Store) Client() (*kubernetes.Client, error) { return s.server.Client(), nil }

// Endpoints implements storage.Backend: the gRPC door on an in-memory listener.
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
