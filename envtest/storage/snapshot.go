package storage

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// ErrNoSnapshots is wrapped when a control plane cannot go back to an earlier state: its store
// keeps no snapshots, such as a store outside the process, or there is none of right after
// boot because the boot has not finished.
var ErrNoSnapshots = errors.New("no snapshots")

// Snapshot is a store's contents at a revision, readable only by its kind of store.
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

// Snapshotter is a Backend that can be saved and restored while it serves.
type Snapshotter interface {
	Backend
	// Snapshot saves the contents of the started store.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Restore brings back a snapshot of this store and returns its writes in
	// order: one key each at new revisions, so watchers see true events. First
	// it deletes what the snapshot lacks, newest first; then it puts what is
	// missing or differs, in the order of its revisions. keep may be nil.
	Restore(ctx context.Context, to Snapshot, keep Keep) ([]Change, error)
}

// Forker is a Backend that can make new stores from its snapshots.
type Forker interface {
	Snapshotter
	// Fork returns a store, not started yet, that begins with the snapshot's
	// contents, revision and history. name is as for the kind's New.
	Fork(name string, from Snapshot) (Backend, error)
}
