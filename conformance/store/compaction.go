package store

import (
	"context"
	"fmt"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/conformance/engine"
)

const (
	etcd3Compact = "k8s.io/apiserver/pkg/storage/etcd3/compact.go"
	etcd3Errors  = "k8s.io/apiserver/pkg/storage/etcd3/errors.go"
	// compactRevisionKey is how API servers agree on who compacts.
	compactRevisionKey = "compact_rev_key"
)

var compactionCases = []Case{
	{
		ID: "compaction/older-reads-are-refused",
		Promise: "Reads before a revision that the store has compacted are refused with mvcc: required revision has " +
			"been compacted.",
		Source: etcd3Errors, Failure: true, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			old := t.Create(ctx, "a", "1")
			compacted := t.Update(ctx, "a", "3", t.Update(ctx, "a", "2", old))
			t.Compact(ctx, compacted)
			_, err := t.Client.Kubernetes.Get(ctx, t.Key("a"), kubernetes.GetOptions{Revision: old})
			t.compactedAway(err, fmt.Sprintf("a get at revision %d, after a compaction at %d", old, compacted))
			_, err = t.Client.Kubernetes.List(ctx, t.Prefix, kubernetes.ListOptions{Revision: old})
			t.compactedAway(err, fmt.Sprintf("a list at revision %d, after a compaction at %d", old, compacted))
			_, err = t.Client.Kubernetes.List(ctx, t.Prefix, kubernetes.ListOptions{Revision: old, Limit: 1})
			t.compactedAway(err, fmt.Sprintf("a page at revision %d, after a compaction at %d", old, compacted))
		},
	},
	{
		ID:      "compaction/keeps-what-is-newer",
		Promise: "Reads at the compacted revision and after it find what they did before.",
		Source:  dataModel, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			kept := t.Create(ctx, "kept", "1")
			a := t.Update(ctx, "a", "2", t.Create(ctx, "a", "1"))
			gone := t.Create(ctx, "gone", "1")
			newer := t.Update(ctx, "a", "3", a)
			t.Delete(ctx, "gone", gone)
			t.Compact(ctx, gone)
			got := t.List(ctx, "", gone)
			t.Expect(t.names(got.Kvs)).To(gomega.Equal([]string{"a", "gone", "kept"}),
				"the keys at the compacted revision %d", gone)
			t.Expect(string(got.Kvs[0].Value)).To(gomega.Equal("2"), "the value of a at the compacted revision %d",
				gone)
			got = t.List(ctx, "", newer)
			t.Expect(string(got.Kvs[0].Value)).To(gomega.Equal("3"), "the value of a at revision %d", newer)
			t.unchanged(ctx, "kept", "1", kept)
			t.Expect(t.names(t.List(ctx, "", 0).Kvs)).To(gomega.Equal([]string{"a", "kept"}), "the keys now")
		},
	},
	{
		ID:      "compaction/keeps-revisions",
		Promise: "A compaction changes no key's creation or modification, and the next update is of that revision.",
		Source:  dataModel, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			created := t.Create(ctx, "a", "1")
			updated := t.Update(ctx, "a", "2", created)
			t.Compact(ctx, t.Fill(ctx, "b", "c"))
			got, _ := t.Get(ctx, "a", 0)
			if got == nil || got.ModRevision != updated || got.CreateRevision != created {
				t.Failf("a was created at revision %d and updated at %d; after a compaction a read finds %s", created,
					updated, text(got))
			}
			t.Update(ctx, "a", "3", updated)
		},
	},
	{
		ID:      "compaction/watch-begins-after-it",
		Promise: "A watch from the revision after the compacted one has every event from there on.",
		Source:  etcd3Watcher, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			compacted := t.Fill(ctx, "a", "b")
			t.Fill(ctx, "c", "d")
			t.Compact(ctx, compacted)
			t.Expect(t.eventNames(t.WatchAfter(ctx, compacted).Events(2))).To(gomega.Equal([]string{"c", "d"}))
		},
	},
	{
		ID: "compaction/of-the-future-is-refused",
		Promise: "A compaction at a revision that the store has not reached is refused with mvcc: required revision " +
			"is a future revision, and compacts nothing.",
		Source: kvAPI, Failure: true, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			old := t.Create(ctx, "a", "1")
			now := t.Update(ctx, "a", "2", old)
			_, err := t.Client.Compact(ctx, now+1<<40)
			t.refused(err, rpctypes.ErrFutureRev, "a compaction at a revision of the future")
			got, _ := t.Get(ctx, "a", old)
			t.Expect(string(got.GetValue())).To(gomega.Equal("1"), "the value of a at revision %d, after a "+
				"compaction was refused", old)
		},
	},
	{
		ID:      "compaction/under-load-loses-nothing",
		Promise: "Compactions under load lose no write, and no event of a watch that keeps up.",
		Source:  "https://github.com/etcd-io/etcd/issues/18089", Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			watch := t.WatchAfter(ctx, t.Create(ctx, "before", "1"))
			var all []*clientv3.Event
			revision := int64(0)
			for i := range 60 {
				name := fmt.Sprintf("%04d", i%10)
				got, _ := t.Get(ctx, name, 0)
				switch {
				case got == nil:
					revision = t.Create(ctx, name, fmt.Sprint(i))
				case i%3 == 0:
					revision = t.Delete(ctx, name, got.ModRevision)
				default:
					revision = t.Update(ctx, name, fmt.Sprint(i), got.ModRevision)
				}
				all = append(all, watch.Events(1)...)
				t.Expect(all[i].Kv.ModRevision).To(gomega.Equal(revision),
					"the revision of event %d, with a compaction after each", i+1)
				t.Compact(ctx, revision)
			}
		},
	},
	{
		ID: "compaction/late-compactor-is-refused",
		Promise: "An API server that expects another version of " + compactRevisionKey +
			" than it has is refused, and told the key: another one compacts.",
		Source: etcd3Compact, Failure: true,
		Test: func(ctx context.Context, t *T) {
			resp, err := t.Client.Txn(ctx).If(
				clientv3.Compare(clientv3.Version(compactRevisionKey), "=", 1<<40),
			).Then(clientv3.OpPut(compactRevisionKey, "0")).Else(clientv3.OpGet(compactRevisionKey)).Commit()
			t.Must(err, "write %s if it has a version that it has not", compactRevisionKey)
			t.Expect(resp.Succeeded).To(gomega.BeFalse(), "whether the write succeeded")
			t.Expect(resp.Responses).To(gomega.HaveLen(1), "what the other branch returned")
			t.Expect(resp.Responses[0].GetResponseRange()).NotTo(gomega.BeNil(),
				"the range that the other branch returned")
		},
	},
}

// compactedAway fails the case unless a request for what should be compacted is refused. A
// store that keeps more of its history than it was told to breaks no API server, and the
// case is skipped.
func (t *T) compactedAway(err error, request string) {
	if err == nil {
		engine.Skip("the store keeps history that it was told to compact, so that it refuses nothing")
	}
	t.refused(err, rpctypes.ErrCompacted, request)
}
