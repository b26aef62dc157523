package keyspace

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Snapshot is a store at one moment: keys with their history, and leases. It never
// changes, and shares with the store what is the same. Any goroutine may use it.
type Snapshot struct {
	origin  *Store
	at      time.Time
	history history

	// mu serializes clones of what follows, which is never changed.
	mu     sync.Mutex
	keys   keyspace
	leases lessor
}

// Snapshot takes a snapshot in constant time, whatever the size of the store.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Snapshot{
		origin: s, at: time.Now(), history: s.history,
		keys: s.keys.clone(), leases: s.leases.clone(),
	}
}

// Revision returns the revision the store had.
func (n *Snapshot) Revision() int64 { return n.keys.rev }

func (n *Snapshot) clone() (keyspace, lessor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.keys.clone(), n.leases.clone()
}

// Fork returns a new store that starts from the snapshot, with its revision, its
// history, and its leases with the time they had left.
func (n *Snapshot) Fork(cfg Config) *Store {
	s := New(cfg)
	keys, leases := n.clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.history = keys, slices.Clip(n.history)
	s.leases.attached, s.leases.lastID = leases.attached, leases.lastID
	s.restoreLeases(n, leases)
	s.rev.Store(s.keys.rev)
	return s
}

// restoreLeases grants or renews the leases of a snapshot, so that each has as much
// time left as when the snapshot was taken. The store is locked.
func (s *Store) restoreLeases(n *Snapshot, leases lessor) {
	passed := time.Since(n.at)
	leases.byID.Ascend(func(le *lease) bool {
		s.leases.set(&lease{id: le.id, ttl: le.ttl, expiry: le.expiry.Add(passed)})
		return true
	})
	s.leases.arm(s)
}

// Rewind does what Server.Rewind of package etcd documents.
func (s *Store) Rewind(to *Snapshot, keep func(key string, have, want *mvccpb.KeyValue) bool) ([]Change, error) {
	keys, leases := to.clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("rewind etcd: the server is closed; fork the snapshot instead")
	}
	s.restoreLeases(to, leases)
	deletes, puts := changes(s.differing(to, &keys, keep))
	var done []Change
	for _, key := range deletes {
		t := &writeTxn{s: s}
		t.delete(key, s.keys.record(key))
		t.publish()
		done = append(done, Change{Key: key, Revision: s.keys.rev, Deleted: true})
	}
	for _, want := range puts {
		t := &writeTxn{s: s}
		v := &want.rec.head.kv
		t.put(want.key, s.keys.record(want.key), v.Key, v.Value, v.Lease).born = want.rec.born
		t.publish()
		done = append(done, Change{Key: want.key, Revision: s.keys.rev})
	}
	s.raftIndex += uint64(len(deletes) + len(puts))
	return done, nil
}

// Change is one write of a rewind.
type Change struct {
	Key      string
	Revision int64
	Deleted  bool // else it was put
}

// changes returns what a rewind has to delete, the key created last first, and what it
// has to put, in the order in which the snapshot's values were written.
func changes(differences []difference) (deletes []string, puts []entry) {
	created := make(map[string]int64)
	for _, d := range differences {
		switch {
		case d.want == nil:
			deletes = append(deletes, d.key)
		case d.have == nil:
			puts = append(puts, entry{d.key, d.want})
			continue
		case d.have.born != d.want.born:
			deletes = append(deletes, d.key)
			fallthrough
		default:
			puts = append(puts, entry{d.key, d.want})
		}
		created[d.key] = d.have.head.kv.CreateRevision
	}
	slices.SortStableFunc(deletes, func(a, b string) int { return cmp.Compare(created[b], created[a]) })
	slices.SortStableFunc(puts, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.rec.head.kv.ModRevision, b.rec.head.kv.ModRevision),
			cmp.Compare(a.rec.head.sub, b.rec.head.sub))
	})
	return deletes, puts
}

// difference is a key that differs between two key spaces; nil where it is missing.
type difference struct {
	key        string
	have, want *record
}

// differing returns the keys that differ from a snapshot and for which keep is not
// true, in order. It looks only at keys written since the snapshot, if the history has
// all of these writes and they are fewer than the keys. The store is locked.
func (s *Store) differing(
	to *Snapshot, target *keyspace, keep func(key string, have, want *mvccpb.KeyValue) bool,
) []difference {
	var list []difference
	add := func(key string, have, want *record) {
		if have != nil && have.head.tombstone() {
			have = nil
		}
		if want != nil && want.head.tombstone() {
			want = nil
		}
		if have != want && (have == nil || want == nil || !sameContent(have.head, want.head)) {
			if keep == nil || !keep(key, have.latest(), want.latest()) {
				list = append(list, difference{key, have, want})
			}
		}
	}
	known := to.origin == s && s.keys.compactRev <= target.rev+1
	if known && s.keys.rev-target.rev < int64(s.keys.tree.Len()) {
		written := make(map[string]struct{})
		for _, c := range s.history[s.history.from(target.rev+1):] {
			written[string(c.now.kv.Key)] = struct{}{}
		}
		for _, key := range slices.Sorted(maps.Keys(written)) {
			add(key, s.keys.record(key), target.record(key))
		}
		return list
	}
	merge(s.keys.entries(), target.entries(), add)
	return list
}

// latest returns the current content of a record, nil if there is none.
func (r *record) latest() *mvccpb.KeyValue {
	if r == nil {
		return nil
	}
	return &r.head.kv
}

// sameContent says whether two versions have the same value and lease.
func sameContent(a, b *version) bool {
	return a == b || a.kv.Lease == b.kv.Lease && string(a.kv.Value) == string(b.kv.Value)
}

// entries returns all keys, in order, with their records.
func (k *keyspace) entries() []entry {
	list := make([]entry, 0, k.tree.Len())
	k.tree.Ascend(func(e entry) bool {
		list = append(list, e)
		return true
	})
	return list
}

// merge calls fn, in order, for each key that is in a or in b.
func merge(a, b []entry, fn func(key string, inA, inB *record)) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].key < b[0].key:
			fn(a[0].key, a[0].rec, nil)
			a = a[1:]
		case len(a) == 0 || b[0].key < a[0].key:
			fn(b[0].key, nil, b[0].rec)
			b = b[1:]
		default:
			fn(a[0].key, a[0].rec, b[0].rec)
			a, b = a[1:], b[1:]
		}
	}
}
