package etcd

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestHashKV compares the hashes of every revision that an embedded etcd and
// this one answer, errors included, after each of many compactions. Some are at
// a deletion, one is at revision 0, and one leaves nothing.
func TestHashKV(t *testing.T) {
	systems := []*clientv3.Client{startReal(t), newServer(t, Config{}).Client().Client, dial(t, newServer(t, Config{})).Client}
	do := func(op clientv3.Op) (rev int64) {
		for _, c := range systems {
			resp, err := c.Do(t.Context(), op)
			require.NoError(t, err)
			if del := resp.Del(); del != nil {
				rev = del.Header.Revision
			} else {
				rev = resp.Put().Header.Revision
			}
		}
		return rev
	}
	compare := func(when string, last int64) {
		for rev := int64(-1); rev <= last+1; rev++ {
			want := hashOf(t.Context(), systems[0], rev)
			for i, c := range systems[1:] {
				assert.Empty(t, cmp.Diff(want, hashOf(t.Context(), c, rev)), "%s, revision %d, system %d: -embedded +this", when, rev, i)
			}
		}
	}
	compact := func(rev, last int64) {
		for _, c := range systems {
			_, err := c.Compact(t.Context(), rev, clientv3.WithCompactPhysical())
			require.NoError(t, err)
		}
		compare(fmt.Sprintf("compacted at %d of %d", rev, last), last)
	}
	compare("empty", 1)
	compact(0, 1)
	last := int64(0)
	for round := range 7 {
		do(clientv3.OpPut("a", fmt.Sprint(round)))
		do(clientv3.OpPut(fmt.Sprint("b", round), "v"))
		deleted := do(clientv3.OpDelete("a"))
		do(clientv3.OpPut("a", "again"))
		last = do(clientv3.OpPut("c", ""))
		compact(deleted, last)
		if round%2 == 0 {
			compact(last-1, last)
		}
	}
	last = do(clientv3.OpDelete("", clientv3.WithPrefix()))
	compact(last, last)
	compare("nothing is left", last)
}

// hashOf returns what HashKV answers, as text.
func hashOf(ctx context.Context, c *clientv3.Client, rev int64) string {
	resp, err := c.HashKV(ctx, c.Endpoints()[0], rev)
	if err != nil {
		return fmt.Sprintf("%T %v", err, err)
	}
	r := (*pb.HashKVResponse)(resp)
	return fmt.Sprintf("%x up to %d, compacted %d, now %d", r.Hash, r.HashRevision, r.CompactRevision, r.Header.Revision)
}
