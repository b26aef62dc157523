package store

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

var etcdCompactionCases = []Case{
	{
		ID:      "etcd-compaction/is-done-when-it-is-answered",
		Promise: "Once a compaction is answered, what it was to remove can't be read.",
		Source:  kvAPI, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			old := t.Create(ctx, "a", "1")
			compacted := t.Update(ctx, "a", "2", old)
			t.Compact(ctx, compacted)
			_, err := t.Client.Kubernetes.Get(ctx, t.Key("a"), kubernetes.GetOptions{Revision: old})
			t.refused(err, rpctypes.ErrCompacted, fmt.Sprintf("a get at revision %d, after a compaction at %d", old,
				compacted))
		},
	},
	{
		ID: "etcd-compaction/of-the-past-is-refused",
		Promise: "A compaction at a revision that has been compacted is refused with mvcc: required revision has " +
			"been compacted.",
		Source: kvAPI, Failure: true, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			old := t.Create(ctx, "a", "1")
			t.Compact(ctx, t.Fill(ctx, "b", "c"))
			_, err := t.Client.Compact(ctx, old)
			t.refused(err, rpctypes.ErrCompacted, "a second compaction, at an older revision")
		},
	},
}
