package keyspace

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

func TestHistory(t *testing.T) {
	var h history
	add := func(h *history, rev int64) {
		h.append(change{now: &version{kv: mvccpb.KeyValue{ModRevision: rev}}})
	}
	const n = 3*historyChunk + 7
	for i := range n {
		add(&h, int64(2*i)) // only even revisions
	}
	frozen := h
	fork := h.fork()
	add(&h, 2*n)
	add(&fork, 2*n+2)
	for _, tt := range []struct{ rev, want int64 }{{-1, 0}, {0, 0}, {1, 2}, {2 * historyChunk, 2 * historyChunk}, {2*n - 3, 2*n - 2}} {
		assert.Equal(t, tt.want, h.at(h.from(tt.rev)).rev(), "from %d begins", tt.rev)
	}
	assert.Equal(t, h.n, h.from(2*n+1), "something is from the future")
	a, b := h.at(h.n-1).rev(), fork.at(fork.n-1).rev()
	assert.Equal(t, int64(2*n), a, "history ends")
	assert.Equal(t, int64(2*n+2), b, "history ends")
	assert.Equal(t, n, frozen.n, "history ends")
	h.dropBefore(h.from(2 * (historyChunk + 5)))
	assert.Equal(t, int64(2*(historyChunk+5)), h.at(h.first).rev(), "begins")
	assert.Len(t, h.chunks, 3, "begins")
	assert.Equal(t, int64(0), frozen.at(frozen.from(0)).rev(), "the copy begins")
	h.dropBefore(h.n)
	assert.Equal(t, h.n, h.from(0), "something is left")
}

func TestRegistry(t *testing.T) {
	spans := map[string]span{
		"key":        spanOf("a/b", ""),
		"prefix":     spanOf("a/", "a0"),
		"longer":     spanOf("a/b", "a/c"),
		"range":      spanOf("a", "b"), // also a prefix
		"odd":        spanOf("a/a", "b/x"),
		"from":       spanOf("a/b", "\x00"),
		"everything": spanOf("\x00", "\x00"),
	}
	wants := map[string][]string{
		"a/b": {"key", "prefix", "longer", "range", "odd", "from", "everything"},
		"a/c": {"prefix", "range", "odd", "from", "everything"},
		"a":   {"range", "everything"},
		"b":   {"odd", "from", "everything"},
		"c":   {"from", "everything"},
	}
	r := newRegistry()
	watchers := make(map[string]*Watcher)
	for name, sp := range spans {
		for range 2 { // of each span two, one of which leaves again
			watchers[name] = &Watcher{span: sp}
			r.join(watchers[name])
		}
		r.leave(watchers[name].group.members[0])
	}
	for key, want := range wants {
		got := make(map[span]int)
		r.visit(key, func(g *group) { got[g.span] += len(g.members) })
		for _, name := range want {
			assert.Equal(t, 1, got[spans[name]], "%q: %d watchers of %s", key, got[spans[name]], name)
		}
		assert.Len(t, got, len(want), "%q: watched by %v, want %v", key, got, want)
	}
	for _, w := range watchers {
		r.leave(w)
	}
	assert.Equal(t, 0, len(r.keys)+len(r.prefixes)+len(r.lengths)+len(r.others))
}
