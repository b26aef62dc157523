package keyspace

import (
	"cmp"
	"slices"
)

// change is one entry of the history: the version a revision gave a key, and
// the one it had before that revision, nil if it did not exist.
type change struct {
	now, prev *version
}

func (c change) rev() int64 { return c.now.kv.ModRevision }

// history is the changes from the compact revision on. It grows only at the end and shrinks only
// at the front, so that a copy stays as it is while the original goes on.
type history []change

// from returns the index of the first entry of revision rev or later.
func (h history) from(rev int64) int {
	i, _ := slices.BinarySearchFunc(h, rev, func(c change, rev int64) int { return cmp.Compare(c.rev(), rev) })
	return i
}

// with returns the history with more entries at its end. A full one doubles its capacity, so that it
// is copied less often than by append alone.
func (h history) with(more []change) history {
	if len(h)+len(more) > cap(h) {
		h = slices.Grow(h, len(h)+len(more))
	}
	return append(h, more...)
}

// without returns the history without its first n entries. If no more than n are left, it copies
// these, to free the memory of the others; if more are left, with copies them when it grows next.
func (h history) without(n int) history {
	if rest := h[n:]; len(rest) > n {
		return rest
	}
	return slices.Clone(h[n:])
}
