package etcd

import (
	"slices"
	"sort"

	"github.com/google/btree"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// btreeDegree balances the depth of the trees against the bytes copied when a
// node shared with a snapshot is written.
const btreeDegree = 32

// version is one value a key has had. It is never changed once published, and
// its KeyValue is handed to readers as it is.
type version struct {
	kv mvccpb.KeyValue
	// sub is the position of the change among those of its revision.
	sub int64
}

// tombstone says that the version is the absence left by a deletion.
func (v *version) tombstone() bool { return v.kv.Version == 0 }

// record holds the versions of one key, from the oldest one compaction left.
type record struct {
	head  *version
	older []*version // ascending
	// epoch is that of the key space that may still change the record in
	// place; any other has to replace it by a copy.
	epoch uint64
}

// at returns the version current at revision rev, or nil if the key did not
// exist then.
func (r *record) at(rev int64) *version {
	v := r.head
	if v.kv.ModRevision > rev {
		i := r.after(rev)
		if i == 0 {
			return nil
		}
		v = r.older[i-1]
	}
	if v.tombstone() {
		return nil
	}
	return v
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

func entryLess(a, b entry) bool { return a.key < b.key }

// keyspace is the tree of keys with their versions, as of revision rev. A
// clone shares everything with its origin until one of them writes.
type keyspace struct {
	tree       *btree.BTreeG[entry]
	epoch      uint64
	rev        int64
	compactRev int64
}

func newKeyspace() keyspace {
	// etcd starts at revision 1 with nothing compacted, which it calls -1.
	return keyspace{tree: btree.NewG(btreeDegree, entryLess), rev: 1, compactRev: -1}
}

// freeze returns a copy that stays as it is whatever happens to k. Nobody may
// use k meanwhile.
func (k *keyspace) freeze() keyspace {
	frozen := *k
	frozen.tree = k.tree.Clone()
	// From here on neither may write to the records they share.
	k.epoch++
	return frozen
}

// record returns key's record, or nil if there is none.
func (k *keyspace) record(key string) *record {
	e, ok := k.tree.Get(entry{key: key})
	if !ok {
		return nil
	}
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

// put makes v the newest version of key, whose record, if there is one, is rec.
func (k *keyspace) put(key string, rec *record, v *version) {
	switch {
	case rec == nil:
		k.tree.ReplaceOrInsert(entry{key, &record{head: v, epoch: k.epoch}})
	case rec.epoch == k.epoch:
		rec.older = append(rec.older, rec.head)
		rec.head = v
	default:
		older := append(slices.Clip(rec.older), rec.head)
		k.tree.ReplaceOrInsert(entry{key, &record{head: v, older: older, epoch: k.epoch}})
	}
}

// compact drops the versions of key that no revision from rev on can see.
func (k *keyspace) compact(key string, rev int64) {
	rec := k.record(key)
	if rec == nil {
		return
	}
	if rec.head.kv.ModRevision <= rev {
		if rec.head.tombstone() {
			k.tree.Delete(entry{key: key})
			return
		}
		if len(rec.older) > 0 {
			k.replace(key, rec, nil)
		}
		return
	}
	first := rec.after(rev)
	if first > 0 && !rec.older[first-1].tombstone() {
		first--
	}
	if first > 0 {
		k.replace(key, rec, slices.Clone(rec.older[first:]))
	}
}

// replace gives key's record another list of older versions.
func (k *keyspace) replace(key string, rec *record, older []*version) {
	if rec.epoch == k.epoch {
		rec.older = older
		return
	}
	k.tree.ReplaceOrInsert(entry{key, &record{head: rec.head, older: older, epoch: k.epoch}})
}

// span is a range of keys as requests give it: a single key, [key, end), or
// every key from key on.
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

// ascend calls fn for the version current at rev of each key of s that exists
// then, in the order of the keys, until fn returns false.
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
