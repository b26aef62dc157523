package store

import (
	"context"
	"strings"

	"github.com/onsi/gomega"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var etcdKVCases = []Case{
	{
		ID:      "etcd-kv/version-counts-updates",
		Promise: "A key's version is 1 when it is created, also again, and one more after each update.",
		Source:  dataModel,
		Test: func(ctx context.Context, t *T) {
			version := func() int64 {
				got, _ := t.Get(ctx, "a", 0)
				return got.GetVersion()
			}
			revision := t.Create(ctx, "a", "1")
			t.Expect(version()).To(gomega.BeEquivalentTo(1), "the version of a key that was created")
			revision = t.Update(ctx, "a", "2", revision)
			t.Expect(version()).To(gomega.BeEquivalentTo(2), "... and updated")
			t.Delete(ctx, "a", revision)
			t.Create(ctx, "a", "3")
			t.Expect(version()).To(gomega.BeEquivalentTo(1), "... and deleted, and created again")
		},
	},
	{
		ID:      "etcd-kv/put-returns-the-previous-value",
		Promise: "A put without a condition creates or updates a key, and returns what it was if asked to.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			first, err := t.Client.KV.Put(ctx, t.Key("a"), "1", clientv3.WithPrevKV())
			t.Must(err, "put a")
			t.Expect(first.PrevKv).To(gomega.BeNil(), "what a was before it was created")
			second, err := t.Client.KV.Put(ctx, t.Key("a"), "2", clientv3.WithPrevKV())
			t.Must(err, "put a again")
			if got := second.PrevKv; got == nil || string(got.Value) != "1" ||
				got.ModRevision != first.Header.Revision {
				t.Failf("a was 1 of revision %d; a put of 2 returns %s as what it was", first.Header.Revision,
					text(got))
			}
			t.unchanged(ctx, "a", "2", second.Header.Revision)
		},
	},
	{
		ID:      "etcd-kv/range-delete-is-one-revision",
		Promise: "A delete of a range deletes all its keys at one revision, and returns how many and what they were.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			last := t.Fill(ctx, "a/1", "a/2", "a/3", "b/1")
			resp, err := t.Client.KV.Delete(ctx, t.Key("a/"), clientv3.WithPrefix(), clientv3.WithPrevKV())
			t.Must(err, "delete a/")
			t.Expect(resp.Deleted).To(gomega.BeEquivalentTo(3), "how many were deleted")
			t.Expect(t.names(resp.PrevKvs)).To(gomega.Equal([]string{"a/1", "a/2", "a/3"}), "what was deleted")
			t.Expect(t.names(t.List(ctx, "", 0).Kvs)).To(gomega.Equal([]string{"b/1"}), "what is left")
			at := resp.Header.Revision
			t.Expect(revisions(t.WatchAfter(ctx, last).Events(3))).To(gomega.Equal([]int64{at, at, at}),
				"the revisions of the events")
		},
	},
	{
		ID: "etcd-kv/ranges-are-sorted",
		Promise: "A range is sorted by key, version, creation, modification or value, either way, before it is " +
			"limited.",
		Source: kvAPI,
		Test: func(ctx context.Context, t *T) {
			c := t.Create(ctx, "c", "1")
			t.Create(ctx, "a", "3")
			t.Create(ctx, "b", "2")
			t.Update(ctx, "c", "9", c)
			for _, by := range []struct {
				name   string
				target clientv3.SortTarget
				want   []string // ascending
			}{
				{"key", clientv3.SortByKey, []string{"a", "b", "c"}},
				{"creation", clientv3.SortByCreateRevision, []string{"c", "a", "b"}},
				{"modification", clientv3.SortByModRevision, []string{"a", "b", "c"}},
				{"value", clientv3.SortByValue, []string{"b", "a", "c"}},
			} {
				got, err := t.Client.KV.Get(ctx, t.Prefix, clientv3.WithPrefix(),
					clientv3.WithSort(by.target, clientv3.SortAscend))
				t.Must(err, "get sorted by %s", by.name)
				t.Expect(t.names(got.Kvs)).To(gomega.Equal(by.want), "the keys sorted by %s", by.name)
				got, err = t.Client.KV.Get(ctx, t.Prefix, clientv3.WithPrefix(),
					clientv3.WithSort(by.target, clientv3.SortDescend), clientv3.WithLimit(1))
				t.Must(err, "get the last by %s", by.name)
				t.Expect(t.names(got.Kvs)).To(gomega.Equal(by.want[2:]), "the last key by %s", by.name)
			}
		},
	},
	{
		ID:      "etcd-kv/ranges-are-filtered-by-revision",
		Promise: "A range can be limited to keys that were created or modified from or until a revision.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			a := t.Create(ctx, "a", "1")
			b := t.Create(ctx, "b", "1")
			modified := t.Update(ctx, "a", "2", a)
			for _, by := range []struct {
				name string
				opt  clientv3.OpOption
				want []string
			}{
				{"created from the second on", clientv3.WithMinCreateRev(b), []string{"b"}},
				{"created until the first", clientv3.WithMaxCreateRev(a), []string{"a"}},
				{"modified from the last on", clientv3.WithMinModRev(modified), []string{"a"}},
				{"modified until before", clientv3.WithMaxModRev(b), []string{"b"}},
			} {
				got, err := t.Client.KV.Get(ctx, t.Prefix, clientv3.WithPrefix(), by.opt)
				t.Must(err, "get the keys %s", by.name)
				t.Expect(t.names(got.Kvs)).To(gomega.Equal(by.want), "the keys %s", by.name)
			}
		},
	},
	{
		ID:      "etcd-kv/serializable-read",
		Promise: "A serializable read, which may be of the past, is answered.",
		Source:  guarantees,
		Test: func(ctx context.Context, t *T) {
			t.Create(ctx, "a", "1")
			t.Must(errorOf(t.Client.KV.Get(ctx, t.Key("a"), clientv3.WithSerializable())), "get a, serializable")
		},
	},
	{
		ID: "etcd-kv/too-large-request-is-refused",
		Promise: "A request of more than 1.5 MiB, or what the store is configured with, is refused whole: " +
			"etcdserver: request is too large.",
		Source: "https://etcd.io/docs/v3.6/dev-guide/limit/", Failure: true,
		Test: func(ctx context.Context, t *T) {
			_, err := t.Client.KV.Put(ctx, t.Key("a"), strings.Repeat("x", 1700<<10))
			t.refused(err, rpctypes.ErrRequestTooLarge, "a put of 1,700 KiB")
			if got, _ := t.Get(ctx, "a", 0); got != nil {
				t.Failf("a put of 1,700 KiB was refused, and a read finds %d bytes", len(got.Value))
			}
		},
	},
	{
		ID:      "etcd-kv/errors-have-their-codes",
		Promise: "Refused revisions have the gRPC code OutOfRange, by which clients in other languages know them.",
		Source:  "go.etcd.io/etcd/api/v3/v3rpc/rpctypes", Failure: true, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			old := t.Create(ctx, "a", "1")
			t.Compact(ctx, t.Update(ctx, "a", "2", old))
			raw := pb.NewKVClient(t.Client.ActiveConnection())
			for what, revision := range map[string]int64{"of the future": old + 1<<40, "that is compacted": old} {
				_, err := raw.Range(ctx, &pb.RangeRequest{Key: []byte(t.Key("a")), Revision: revision})
				t.Expect(status.Code(err)).To(gomega.Equal(codes.OutOfRange),
					"the code of the refusal of a revision %s: %v", what, err)
			}
		},
	},
}
