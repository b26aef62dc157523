package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

const apiChunking = "KEP-365; " + etcd3Store

var pagingCases = []Case{
	{
		ID: "paging/pages-join-up",
		Promise: "Pages of a list, each from the key after the last of the one before at the same revision, are the " +
			"whole list.",
		Source: apiChunking,
		Test: func(ctx context.Context, t *T) {
			t.Fill(ctx, numbered(10)...)
			for _, limit := range []int64{1, 3, 5, 10, 11} {
				kvs, _ := t.pages(ctx, limit, nil)
				t.Expect(t.names(kvs)).To(gomega.Equal(numbered(10)), "the keys of pages of %d", limit)
			}
		},
	},
	{
		ID:      "paging/page-is-not-longer-than-its-limit",
		Promise: "A page has as many keys as its limit, if there are that many.",
		Source:  apiChunking,
		Test: func(ctx context.Context, t *T) {
			t.Fill(ctx, numbered(10)...)
			got, err := t.Client.Kubernetes.List(ctx, t.Prefix, kubernetes.ListOptions{Limit: 4})
			t.Must(err, "list a page of 4 of 10 keys")
			t.Expect(t.names(got.Kvs)).To(gomega.Equal(numbered(4)), "the first page of 4")
		},
	},
	{
		ID: "paging/count-is-of-all-that-is-left",
		Promise: "A page tells how many keys there are from its first one on, as remainingItemCount needs it, and " +
			"whether there are more.",
		Source: apiChunking,
		Test: func(ctx context.Context, t *T) {
			t.Fill(ctx, numbered(10)...)
			for _, at := range []struct {
				from  string
				limit int64
				count int64
				more  bool
			}{{"", 4, 10, true}, {"0003\x00", 4, 6, true}, {"0007\x00", 4, 2, false}, {"0005\x00", 4, 4, false}} {
				got, err := t.Client.KV.Get(ctx, t.Key(at.from),
					clientv3.WithRange(clientv3.GetPrefixRangeEnd(t.Prefix)), clientv3.WithLimit(at.limit))
				t.Must(err, "list a page from %q", at.from)
				t.Expect(got.Count).To(gomega.Equal(at.count), "the count of a page from %q", at.from)
				t.Expect(got.More).To(gomega.Equal(at.more), "whether there is more after a page of 4 from %q", at.from)
			}
		},
	},
	{
		ID:      "paging/writes-between-pages-do-not-show",
		Promise: "Pages of one revision are of that revision, whatever is created, changed or deleted in between.",
		Source:  apiChunking + "; " + guarantees,
		Test: func(ctx context.Context, t *T) {
			t.Fill(ctx, numbered(9)...)
			kvs, revision := t.pages(ctx, 3, func(page int) {
				switch page {
				case 1: // before, among and after what is still to be listed
					t.Create(ctx, "0000a", "late")
					t.Create(ctx, "0005a", "late")
					changed, _ := t.Get(ctx, "0006", 0)
					t.Update(ctx, "0006", "late", changed.ModRevision)
				case 2:
					gone, _ := t.Get(ctx, "0008", 0)
					t.Delete(ctx, "0008", gone.ModRevision)
				}
			})
			t.Expect(t.names(kvs)).To(gomega.Equal(numbered(9)), "the keys of pages at revision %d", revision)
			t.Expect(string(kvs[6].Value)).To(gomega.Equal("of 0006"), "the value of 0006 at revision %d", revision)
		},
	},
	{
		ID:      "paging/count-is-of-the-revision",
		Promise: "The count of a page at a revision is of that revision, not of now.",
		Source:  apiChunking,
		Test: func(ctx context.Context, t *T) {
			then := t.Fill(ctx, numbered(6)...)
			t.Fill(ctx, "x", "y", "z")
			got, err := t.Client.Kubernetes.List(ctx, t.Prefix, kubernetes.ListOptions{Limit: 2, Revision: then})
			t.Must(err, "list a page at revision %d", then)
			t.Expect(got.Count).To(gomega.BeEquivalentTo(6), "the count at revision %d", then)
		},
	},
	{
		ID: "paging/compaction-ends-a-list",
		Promise: "A page at a revision that has been compacted is refused with mvcc: required revision has been " +
			"compacted.",
		Source: "k8s.io/apiserver/pkg/storage/etcd3/errors.go", Failure: true, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			t.Fill(ctx, numbered(6)...)
			first, err := t.Client.Kubernetes.List(ctx, t.Prefix, kubernetes.ListOptions{Limit: 3})
			t.Must(err, "list the first page")
			t.Compact(ctx, t.Fill(ctx, "0003a", "x", "y"))
			second, err := t.Client.Kubernetes.List(ctx, t.Prefix,
				kubernetes.ListOptions{Limit: 3, Revision: first.Revision, Continue: t.Key("0002\x00")})
			if err == nil {
				t.Expect(t.names(second.Kvs)).To(gomega.Equal([]string{"0003", "0004", "0005"}),
					"the second page, of revision %d", first.Revision)
			}
			t.compactedAway(err, "the second page, at a revision that has been compacted")
		},
	},
	{
		ID:      "paging/goes-on-at-a-new-revision",
		Promise: "After that, the rest can be listed as it is now, from the key where the list ended.",
		Source:  "k8s.io/apiserver/pkg/storage/etcd3/errors.go", Failure: true, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			t.Fill(ctx, numbered(6)...)
			t.Compact(ctx, t.Fill(ctx, "0004a", "x"))
			got, err := t.Client.Kubernetes.List(ctx, t.Prefix, kubernetes.ListOptions{Continue: t.Key("0003\x00")})
			t.Must(err, "list the rest")
			t.Expect(t.names(got.Kvs)).To(gomega.Equal([]string{"0004", "0004a", "0005", "x"}), "the rest after 0003")
		},
	},
}

// pages lists all of the case page by page, as an API server does. After each page, between
// may write.
func (t *T) pages(ctx context.Context, limit int64, between func(page int)) ([]*mvccpb.KeyValue, int64) {
	opts := kubernetes.ListOptions{Limit: limit}
	var all []*mvccpb.KeyValue
	const most = 100 // a store that repeats itself would go on for ever
	for page := 1; page <= most; page++ {
		got, err := t.Client.Kubernetes.List(ctx, t.Prefix, opts)
		t.Must(err, "list page %d of %d keys", page, limit)
		all = append(all, got.Kvs...)
		opts.Revision = cmp.Or(opts.Revision, got.Revision)
		if len(got.Kvs) == 0 || int64(len(got.Kvs)) == got.Count {
			return all, opts.Revision
		}
		opts.Continue = string(slices.Concat(got.Kvs[len(got.Kvs)-1].Key, []byte{0}))
		if between != nil {
			between(page)
		}
	}
	t.Failf("%d pages of %d keys have no end", most, limit)
	return nil, 0
}

// Compact compacts the history before a revision, as an API server does.
func (t *T) Compact(ctx context.Context, revision int64) {
	t.Must(errorOf(t.Client.Compact(ctx, revision)), "compact at revision %d", revision)
}
