package cluster

import (
	"context"

	"snowglobe.test/envtest/storage"
)

// Snapshot implements storage.Snapshotter by a copy of every key.
func (s *Store) Snapshot(ctx context.Context) (storage.Snapshot, error) {
	return storage.CopyFrom(ctx, s)
}

// Restore implements storage.Snapshotter.
func (s *Store) Restore(ctx context.Context, to storage.Snapshot, keep storage.Keep) ([]storage.Change, error) {
	return storage.RestoreCopy(ctx, s, to, keep)
}
