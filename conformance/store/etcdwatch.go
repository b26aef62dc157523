package store

import (
	"context"
	"strings"

	"github.com/onsi/gomega"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var etcdWatchCases = []Case{
	{
		ID:      "etcd-watch/filters-kinds-of-events",
		Promise: "A watch without puts has only deletions, and one without deletions only puts.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			deletions := t.Watch(ctx, "a", clientv3.WithRev(revision), clientv3.WithFilterPut())
			puts := t.Watch(ctx, "a", clientv3.WithRev(revision), clientv3.WithFilterDelete())
			deleted := t.Delete(ctx, "a", t.Update(ctx, "a", "2", revision))
			again := t.Create(ctx, "a", "3")
			t.Expect(revisions(deletions.Events(1))).To(gomega.Equal([]int64{deleted}), "without puts")
			got := revisions(puts.Events(3))
			t.Expect(got[2]).To(gomega.Equal(again), "the last of %v, without deletions", got)
		},
	},
	{
		ID:      "etcd-watch/previous-value-only-if-asked-for",
		Promise: "An event has the value before only if the watch asks for it.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			watch := t.Watch(ctx, "a", clientv3.WithRev(revision+1))
			t.Update(ctx, "a", "2", revision)
			t.Expect(watch.Events(1)[0].PrevKv).To(gomega.BeNil(), "the value before, which was not asked for")
		},
	},
	{
		ID:      "etcd-watch/progress-of-any-watch",
		Promise: "Progress that is asked for reaches also watches that were created without it.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "elsewhere", "1")
			watch := t.Watch(ctx, "watched/", clientv3.WithPrefix(), clientv3.WithRev(revision+1))
			cache := &cache{t: t, watch: watch, values: map[string]string{}}
			cache.reach(t.Update(ctx, "elsewhere", "2", revision))
		},
	},
	{
		ID:      "etcd-watch/client-chooses-the-id",
		Promise: "A client may choose the ID of a watch, and several watches of one stream are told apart by it.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			stream, err := pb.NewWatchClient(t.Client.ActiveConnection()).Watch(ctx)
			t.Must(err, "open a stream")
			for id, name := range map[int64]string{7: "a", 8: "b"} {
				request := &pb.WatchCreateRequest{Key: []byte(t.Key(name)), WatchId: id}
				union := &pb.WatchRequest_CreateRequest{CreateRequest: request}
				t.Must(stream.Send(&pb.WatchRequest{RequestUnion: union}), "create watch %d", id)
				resp, err := stream.Recv()
				t.Must(err, "wait for watch %d", id)
				if !resp.Created || resp.Canceled || resp.WatchId != id {
					t.Failf("watch %d was asked for; the answer is %v", id, resp)
				}
			}
			t.Create(ctx, "b", "1")
			resp, err := stream.Recv()
			t.Must(err, "wait for an event of b")
			t.Expect(resp.WatchId).To(gomega.BeEquivalentTo(8), "the ID of the watch that has the event of b")
		},
	},
	{
		ID:      "etcd-watch/large-responses-are-fragmented",
		Promise: "A watch that asks for fragments has a large response in several, which together are whole.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			var all []clientv3.Op
			for _, name := range numbered(5) {
				all = append(all, clientv3.OpPut(t.Key(name), strings.Repeat(name, 60<<10)))
			}
			t.Must(errorOf(t.Client.Txn(ctx).Then(all...).Commit()), "write 1.2 MB in one transaction")
			events := t.WatchAfter(ctx, before, clientv3.WithFragment()).Events(5)
			for i, name := range numbered(5) {
				t.Expect(len(events[i].Kv.Value)).To(gomega.Equal(4*60<<10), "the length of the value of %s", name)
			}
		},
	},
}
