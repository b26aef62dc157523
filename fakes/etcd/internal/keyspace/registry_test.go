package keyspace

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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
	assert.Equal(t, 0, len(r.groups)+len(r.ranges))
}
