package keyspace

import (
	"cmp"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// writeTxn collects the changes of one transaction, all of which get the
// revision after the current one. The store is locked from begin to end.
type writeTxn struct {
	s       *Store
	changes []change
}

// begin locks the store for a write. What takes space has a cost in bytes.
func (s *Store) begin(cost int) (*writeTxn, error) {
	s.mu.Lock()
	err := cmp.Or(s.spend(cost), s.alarmed(cost > 0))
	if s.closed {
		err = rpctypes.ErrGRPCStopped
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	s.raftIndex++
	return &writeTxn{s: s}, nil
}

// rev returns the revision reads inside the transaction see.
func (t *writeTxn) rev() int64 {
	if len(t.changes) > 0 {
		return t.s.keys.rev + 1
	}
	return t.s.keys.rev
}

// end publishes the changes and unlocks the store.
func (t *writeTxn) end() {
	t.publish()
	t.s.mu.Unlock()
}

// publish turns the changes, if there are any, into a new revision.
func (t *writeTxn) publish() {
	s := t.s
	if len(t.changes) == 0 {
		return
	}
	s.keys.rev++
	s.rev.Store(s.keys.rev)
	s.history = s.history.with(t.changes)
	s.notify(t.changes)
}

// put writes key, whose record is rec, and returns its record. keyBytes may be nil.
func (t *writeTxn) put(key string, rec *record, keyBytes, value []byte, lease int64) *record {
	s := t.s
	v := &version{sub: int32(len(t.changes))}
	rev := s.keys.rev + 1
	v.kv.Value, v.kv.Lease = value, lease
	v.kv.CreateRevision, v.kv.ModRevision, v.kv.Version = rev, rev, 1

	oldLease := int64(0)
	if rec != nil {
		keyBytes = rec.head.kv.Key
		if !rec.head.tombstone() {
			v.kv.CreateRevision = rec.head.kv.CreateRevision
			v.kv.Version = rec.head.kv.Version + 1
			oldLease = rec.head.kv.Lease
		}
	}
	if keyBytes == nil {
		keyBytes = []byte(key)
	}
	v.kv.Key = keyBytes
	if oldLease != lease {
		s.leases.move(key, oldLease, lease)
	}
	return t.record(key, rec, v)
}

// delete leaves a tombstone for key, whose record is rec.
func (t *writeTxn) delete(key string, rec *record) {
	v := &version{sub: int32(len(t.changes))}
	v.kv.Key = rec.head.kv.Key
	v.kv.ModRevision = t.s.keys.rev + 1
	lease := rec.head.kv.Lease
	t.record(key, rec, v)
	if lease != 0 {
		t.s.leases.move(key, lease, 0)
	}
}

// record makes v the newest version of key and notes the change.
func (t *writeTxn) record(key string, rec *record, v *version) *record {
	c := change{now: v}
	if rec != nil {
		c.prev = rec.at(t.s.keys.rev)
		if rec.head.kv.ModRevision == v.kv.ModRevision {
			rec.head.superseded = true
		}
	}
	t.s.frozen = nil
	t.changes = append(t.changes, c)
	return t.s.keys.put(key, rec, v)
}

// deleteRange deletes the keys of sp and returns their last versions.
func (t *writeTxn) deleteRange(sp span) []*mvccpb.KeyValue {
	k := &t.s.keys
	var keys []string
	var prev []*mvccpb.KeyValue
	k.ascend(sp, t.rev(), func(key string, v *version) bool {
		keys = append(keys, key)
		prev = append(prev, &v.kv)
		return true
	})
	for _, key := range keys {
		t.delete(key, k.record(key))
	}
	return prev
}

// freeze returns an unchanging copy of the key space. The store is locked.
func (s *Store) freeze() *keyspace {
	if s.frozen == nil {
		k := s.keys.clone()
		s.frozen = &k
	}
	return s.frozen
}
