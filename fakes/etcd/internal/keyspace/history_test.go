package keyspace

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

func TestHistory(t *testing.T) {
	h := newHistory()
	add := func(h history, rev int64, sub int32) {
		h.ReplaceOrInsert(change{now: &version{kv: mvccpb.KeyValue{ModRevision: rev}, sub: sub}})
	}
	for _, rev := range []int64{2, 4, 6} { // only even revisions
		add(h, rev, 0)
		add(h, rev, 1)
	}
	from := func(h history, rev int64) (all []int64) {
		h.from(rev, func(c change) bool {
			all = append(all, 10*c.rev()+int64(c.now.sub))
			return true
		})
		return all
	}
	fork := history{h.Clone()}
	add(h, 8, 0)
	add(fork, 10, 0)
	assert.Equal(t, []int64{60, 61, 80}, from(h, 5))
	assert.Equal(t, []int64{60, 61, 100}, from(fork, 6))
	assert.Equal(t, []int64{20, 21, 40, 41, 60, 61, 80}, from(h, -1))
	assert.Empty(t, from(h, 9), "something is from the future")
}
