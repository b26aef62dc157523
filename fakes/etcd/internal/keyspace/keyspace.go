package keyspace

import (
	"slices"
	"sort"

	"github.com/google/btree"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// btreeDegree balances depth against the copying of nodes shared with a snapshot.
const btreeDegree = 32

// version is one value of a key. It never changes once published: readers share it.
type version struct {
	kv         mvccpb.KeyValue
	sub        int32 // position among the changes of its revision
	superseded bool  // by the same revision: only watchers see this one
}

// versionOverhead is about what a version adds to key and value, here and in etcd.
const versionOverhead = 128

// size returns about how many bytes a version takes.
func (v *version) size() int64 {
	return int64(len(v.kv.Key)+len(v.kv.Value)) + versionOverhead
}

// tombstone reports whether the version marks a deletion.
func (v *version) tombstone() bool { return v.kv.Version == 0 }

// record holds the versions of one key, from the oldest one compaction left.
type record struct {
	head  *version
	older []*version // ascending
	// since and live repeat what a reader needs to know about head: its revision,
	// and that it is not a tombstone. They save a long list a memory access per key.
	since int64
	live  bool
	// born identifies the key's current life: the revision that created it or, if
	// a rewind brought it back, the revision that created it originally.
	born int64
	// epoch is that of the one key space that may change the record; others copy it.
	epoch uint64
}

// at returns the version current at rev, or nil if the key did not exist then.
func (r *record) at(rev int64) *version {
	if r.since <= rev {
		if !r.live {
			return nil
		}
		return r.head
	}
	i := r.after(rev)
	if i == 0 || r.older[i-1].tombstone() {
		return nil
	}
	return r.older[i-1]
}

// lead makes v the newest version.
func (r *record) lead(v *version) {
	r.head, r.since, r.live = v, v.kv.ModRevision, !v.tombstone()
}

// after returns the index in older of the first version newer than rev.
func (r *record) after(rev int64) int {
	return sort.Search(len(r.older), func(i int) bool { return r.older[i].kv.ModRevision > rev })
}

// entry is an element of the tree of keys.
type entry struct {
	key string
	rec *record
}

// keyspace is the tree of keys with their versions, as of revision rev. A
// clone shares everything with its origin until one of them writes.
type keyspace struct {
	tree       *btree.BTreeG[entry]
	epoch      uint64
	rev        int64
	compactRev int64
	bytes      int64 // of all versions, about
}

func newKeyspace() keyspace {
	// etcd starts at revision 1 with nothing compacted, which it calls -1.
	byKey := func(a, b entry) bool { return a.key < b.key }
	return keyspace{tree: btree.NewG(btreeDegree, byKey), rev: 1, compactRev: -1}
}

// clone returns a copy in constant time. No other goroutine may use k meanwhile.
func (k *keyspace) clone() keyspace {
	// Neither may change the records they share from here on.
	k.epoch++
	c := *k
	c.tree = k.tree.Clone()
	return c
}

// record returns key's record, or nil if there is none.
func (k *keyspace) record(key string) *record {
	e, _ := k.tree.Get(entry{key: key})
	return e.rec
}

// live returns the current version of key, or nil if it does not exist.
func (k *keyspace) live(key string) *version {
	rec := k.record(key)
	if rec == nil || rec.head.tombstone() {
		return nil
	}
	return rec.head
}

// put adds v to rec, the record of key or nil, and returns the record that has it.
func (k *keyspace) put(key string, rec *record, v *version) *record {
	switch {
	case rec == nil:
		rec = &record{epoch: k.epoch}
		k.tree.ReplaceOrInsert(entry{key, rec})
	case rec.epoch == k.epoch:
		rec.older = append(rec.older, rec.head)
	default:
		rec = &record{older: append(slices.Clip(rec.older), rec.head), born: rec.born, epoch: k.epoch}
		k.tree.ReplaceOrInsert(entry{key, rec})
	}
	rec.lead(v)
	k.bytes += v.size()
	if v.kv.CreateRevision == v.kv.ModRevision {
		rec.born = v.kv.CreateRevision
	}
	return rec
}

// compact drops the versions of key that no revision from rev on can see.
func (k *keyspace) compact(key string, rev int64) {
	rec := k.record(key)
	if rec == nil {
		return
	}
	gone := 0
	switch {
	case rec.head.kv.ModRevision > rev:
		gone = rec.after(rev)
		if gone > 0 && !rec.older[gone-1].tombstone() {
			gone-- // that one is what rev itself sees
		}
	case rec.head.tombstone():
		k.drop(rec.older)
		k.drop([]*version{rec.head})
		k.tree.Delete(entry{key: key})
		return
	default:
		gone = len(rec.older)
	}
	if gone == 0 {
		return
	}
	k.drop(rec.older[:gone])
	older := slices.Clone(rec.older[gone:])
	if rec.epoch == k.epoch {
		rec.older = older
		return
	}
	pruned := &record{older: older, born: rec.born, epoch: k.epoch}
	pruned.lead(rec.head)
	k.tree.ReplaceOrInsert(entry{key, pruned})
}

// drop counts versions that are gone.
func (k *keyspace) drop(versions []*version) {
	for _, v := range versions {
		k.bytes -= v.size()
	}
}

// span is the keys a request gives: a single one, [key, end), or all from key on.
type span struct {
	key, end string
	kind     spanKind
}

type spanKind uint8

const (
	singleKey spanKind = iota
	halfOpen
	fromKey
)

// spanOf reads the key and range_end of a request.
func spanOf[T string | []byte](key, end T) span {
	switch {
	case len(end) == 0:
		return span{key: string(key)}
	case len(end) == 1 && end[0] == 0:
		return span{key: string(key), kind: fromKey}
	default:
		return span{key: string(key), end: string(end), kind: halfOpen}
	}
}

// contains says whether key lies in s.
func (s span) contains(key string) bool {
	switch s.kind {
	case singleKey:
		return key == s.key
	case fromKey:
		return key >= s.key
	default:
		return key >= s.key && key < s.end
	}
}

// ascend calls fn, until it returns false, for each key in s at rev, in order.
func (k *keyspace) ascend(s span, rev int64, fn func(key string, v *version) bool) {
	visit := func(e entry) bool {
		if v := e.rec.at(rev); v != nil {
			return fn(e.key, v)
		}
		return true
	}
	switch s.kind {
	case singleKey:
		if rec := k.record(s.key); rec != nil {
			visit(entry{s.key, rec})
		}
	case fromKey:
		k.tree.AscendGreaterOrEqual(entry{key: s.key}, visit)
	default:
		k.tree.AscendRange(entry{key: s.key}, entry{key: s.end}, visit)
	}
}
