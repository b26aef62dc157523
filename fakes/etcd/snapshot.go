package etcd

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// Snapshot is a store at one moment: keys with their history, and leases. It never
// changes, and shares with the store what is the same. Any goroutine may use it.
type Snapshot struct{ of *keyspace.Snapshot }

// Snapshot takes a snapshot in constant time, whatever the size of the store.
func (s *Server) Snapshot() *Snapshot { return &Snapshot{s.store.Snapshot()} }

// Revision returns the revision the store had.
func (n *Snapshot) Revision() int64 { return n.of.Revision() }

// Fork returns a new server that starts from the snapshot, with its revision, its
// history, and its leases with the time they had left.
func (n *Snapshot) Fork(cfg Config) (*Server, error) { return start(cfg, n.of.Fork) }

// Change is one write of a rewind.
type Change struct {
	Key      string
	Revision int64
	Deleted  bool // else it was put
}

// Rewind brings the store back to the state in a snapshot of this store or of
// another, and returns its writes in order: ordinary transactions, one key and one
// new revision each, so that every watcher sees true events. First it deletes keys
// that did not exist, or were deleted and created again since, newest first. Then it
// puts keys that are missing or differ, in the order of their revisions in the
// snapshot. Keys with the same value are left alone. No other write comes in between.
//
// Leases of the snapshot are granted again or renewed to the time they had
// left. Leases granted since lose their keys, but stay, because a client may
// hold their ids.
//
// Keys for which keep returns true stay as they are, with their leases. keep,
// which may be nil, is called for each key that differs, with its current and
// its future content, nil if the key does not exist. It must not change them
// nor call the server.
func (s *Server) Rewind(to *Snapshot, keep func(key string, have, want *mvccpb.KeyValue) bool) ([]Change, error) {
	done, err := s.store.Rewind(to.of, keep)
	var changes []Change
	for _, c := range done {
		changes = append(changes, Change(c))
	}
	return changes, err
}
