package storage

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Snapshot is the contents of a store at one revision. Only the kind of store that
// took it can read it.
type Snapshot interface {
	// Revision is the store's revision when the snapshot was taken.
	Revision() int64
}

// Change is one write of a Restore.
type Change struct {
	Key      string
	Revision int64
	Deleted  bool // else it was put
}

// Keep reports whether a Restore leaves a key alone. It is called for each key that
// differs, with what the store has and what the snapshot has, nil if there is no
// such key. It must return quickly, change nothing and not call the store.
type Keep func(key string, have, want *mvccpb.KeyValue) bool

// Snapshotter is a Backend whose contents can be saved and restored while it
// serves.
type Snapshotter interface {
	Backend
	// Snapshot saves the contents of the started store.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Restore brings back the contents of a snapshot of this store. It makes
	// ordinary writes of one key each at new revisions, so watchers see true
	// events: first it deletes the keys that the snapshot lacks, newest first;
	// then it puts the keys that are missing or differ, in the order of their
	// revisions. It returns its writes in order. keep may be nil.
	Restore(ctx context.Context, to Snapshot, keep Keep) ([]Change, error)
}

// Forker is a Backend that can make new stores from its snapshots.
type Forker interface {
	Snapshotter
	// Fork returns a store, not started yet, that begins with the contents,
	// revision and history of the snapshot. name is the argument of the kind's
	// New.
	Fork(name string, from Snapshot) (Backend, error)
}
