package keyspace

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

func TestHistory(t *testing.T) {
	at := func(rev int64) change { return change{now: &version{kv: mvccpb.KeyValue{ModRevision: rev}}} }
	var h history
	for _, rev := range []int64{2, 2, 4, 6} { // only even revisions
		h = h.with([]change{at(rev)})
	}
	for rev, want := range map[int64]int{-1: 0, 2: 0, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4} {
		assert.Equal(t, want, h.from(rev), "from %d", rev)
	}
	revs := func(h history) (all []int64) {
		for _, c := range h {
			all = append(all, c.rev())
		}
		return all
	}
	snapshot := h
	h = h.with([]change{at(8)})
	fork := slices.Clip(snapshot).with([]change{at(10)})
	assert.Equal(t, []int64{2, 2, 4, 6}, revs(snapshot))
	assert.Equal(t, []int64{2, 2, 4, 6, 8}, revs(h))
	assert.Equal(t, []int64{2, 2, 4, 6, 10}, revs(fork))
	for n := range len(h) + 1 {
		assert.Equal(t, revs(h[n:]), revs(h.without(n)))
	}
	assert.Equal(t, 2, cap(h.without(3)), "what is forgotten is still in memory")
}
