package keyspace

import (
	"cmp"

	"github.com/google/btree"
)

// change is one entry of the history: the version a revision gave a key, and
// the one it had before that revision, nil if it did not exist.
type change struct {
	now, prev *version
}

func (c change) rev() int64 { return c.now.kv.ModRevision }

// history is the changes from the compact revision on, in order. Like the tree of keys it
// is cloned in constant time.
type history struct{ *btree.BTreeG[change] }

func newHistory() history {
	return history{btree.NewG(btreeDegree, func(a, b change) bool {
		return cmp.Or(cmp.Compare(a.rev(), b.rev()), cmp.Compare(a.now.sub, b.now.sub)) < 0
	})}
}

// from calls fn, until it returns false, for each change of revision rev or later.
func (h history) from(rev int64, fn func(c change) bool) {
	first := version{sub: -1}
	first.kv.ModRevision = rev
	h.AscendGreaterOrEqual(change{now: &first}, fn)
}
