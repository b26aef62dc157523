package storage

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Snapshot is the contents of a store at one moment. The kind of store that took
// it can read it.
type Snapshot interface {
	// Revision is the one the store had.
	Revision() int64
}

// Change is one write of a Restore.
type Change struct {
	Key      string
	Revision int64
	Deleted  bool // else it was put
}

// Keep picks keys that a Restore leaves alone. It is told what a key that
// differs has and what it would get, nil where there is no such key. It must
// return quickly, change nothing and not call the store.
type Keep func(key string, have, want *mvccpb.KeyValue) bool

// Snapshotter is a Backend whose contents can be kept and brought back while it
// serves.
type Snapshotter interface {
	Backend
	// Snapshot keeps the contents of the started store.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Restore brings the contents of a snapshot of this store back, by ordinary
	// writes at new revisions, each of one key, so that whoever watches sees true
	// events: first what was not there is deleted, the newest first, then what
	// is missing or differs is put, in the order of the revisions it had. It
	// returns what it wrote, in order. keep may be nil.
	Restore(ctx context.Context, to Snapshot, keep Keep) ([]Change, error)
}

// Forker is a Backend of whose snapshots new stores can be made.
type Forker interface {
	Snapshotter
	// Fork returns a store, not started yet, that begins with the contents, the
	// revision and the history that this one had. The name is as in the kind's
	// New.
	Fork(name string, from Snapshot) (Backend, error)
}
