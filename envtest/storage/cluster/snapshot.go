package cluster

import (
	"context"
	"fmt"

	"snowglobe.test/envtest/storage"
)

// Snapshot implements storage.Snapshotter by a copy of every key.
func (s *Store) Snapshot(ctx context.Context) (storage.Snapshot, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	return storage.Copy(ctx, client.Client)
}

// Restore implements storage.Snapshotter.
func (s *Store) Restore(ctx context.Context, to storage.Snapshot, keep storage.Keep) ([]storage.Change, error) {
	copied, ok := to.(*storage.Copied)
	if !ok {
		return nil, fmt.Errorf("restore etcd cluster: the snapshot, a %T, is of another kind of store", to)
	}
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	return copied.Restore(ctx, client.Client, keep)
}
