package keyspace

import (
	"slices"
	"sort"
)

const historyChunk = 512

// change is one entry of the history: the version a revision gave a key, and
// the one it had before that revision, nil if it did not exist.
type change struct {
	now, prev *version
}

func (c *change) rev() int64 { return c.now.kv.ModRevision }

// history is the changes from the compact revision on. It grows only at the end and
// shrinks only at the front, so that a copy stays valid while the original goes on.
type history struct {
	chunks []*[historyChunk]change
	// The entries are those from first up to n, counted from chunks[0].
	first, n int
}

func (h *history) at(i int) *change {
	return &h.chunks[i/historyChunk][i%historyChunk]
}

func (h *history) append(c change) {
	if h.n == len(h.chunks)*historyChunk {
		h.chunks = append(h.chunks, new([historyChunk]change))
	}
	*h.at(h.n) = c
	h.n++
}

// from returns the index of the first entry of revision rev or later.
func (h *history) from(rev int64) int {
	return h.first + sort.Search(h.n-h.first, func(i int) bool { return h.at(h.first+i).rev() >= rev })
}

// dropBefore forgets the entries before index i. Indexes change.
func (h *history) dropBefore(i int) {
	gone := i / historyChunk
	if gone > 0 {
		h.chunks = slices.Clone(h.chunks[gone:])
		h.n -= gone * historyChunk
		i -= gone * historyChunk
	}
	h.first = i
}

// fork returns a copy that may grow independently of h.
func (h *history) fork() history {
	f := history{chunks: slices.Clone(h.chunks), first: h.first, n: h.n}
	if used := f.n % historyChunk; used != 0 {
		// Only the used part: h may still append to the rest.
		last := len(f.chunks) - 1
		chunk := new([historyChunk]change)
		copy(chunk[:used], f.chunks[last][:used])
		f.chunks[last] = chunk
	}
	return f
}
