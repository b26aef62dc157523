package etcd

import (
	"testing"

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
		if got := h.at(h.from(tt.rev)).rev(); got != tt.want {
			t.Errorf("from %d begins at %d, want %d", tt.rev, got, tt.want)
		}
	}
	if h.from(2*n+1) != h.n {
		t.Error("something is from the future")
	}
	if a, b := h.at(h.n-1).rev(), fork.at(fork.n-1).rev(); a != 2*n || b != 2*n+2 || frozen.n != n {
		t.Errorf("history ends at %d, its fork at %d, the copy has %d", a, b, frozen.n)
	}
	h.dropBefore(h.from(2 * (historyChunk + 5)))
	if got := h.at(h.first).rev(); got != 2*(historyChunk+5) || len(h.chunks) != 3 {
		t.Errorf("begins at %d in %d chunks", got, len(h.chunks))
	}
	if got := frozen.at(frozen.from(0)).rev(); got != 0 {
		t.Errorf("the copy begins at %d", got)
	}
	h.dropBefore(h.n)
	if h.from(0) != h.n {
		t.Error("something is left")
	}
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
	watchers := make(map[string]*watcher)
	for name, sp := range spans {
		for range 2 { // of each span two, one of which leaves again
			watchers[name] = &watcher{span: sp}
			r.join(watchers[name])
		}
		r.leave(watchers[name].group.members[0])
	}
	for key, want := range wants {
		got := make(map[span]int)
		r.visit(key, func(g *group) { got[g.span] += len(g.members) })
		for _, name := range want {
			if got[spans[name]] != 1 {
				t.Errorf("%q: %d watchers of %s", key, got[spans[name]], name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q: watched by %v, want %v", key, got, want)
		}
	}
	for _, w := range watchers {
		r.leave(w)
	}
	if n := len(r.keys) + len(r.prefixes) + len(r.lengths) + len(r.others); n != 0 {
		t.Errorf("%d entries left", n)
	}
}
