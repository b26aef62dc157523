package etcd

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// TestSharedStream has more watchers on one stream than it buffers responses,
// and no watcher reads until a hundred writes are over: each watcher gets each
// event once and in order.
func TestSharedStream(t *testing.T) {
	const watchers, writes = 50, 100
	s := newServer(t, Config{WatchBuffer: 8})
	stream := watchStream(t, s)
	for i := range watchers {
		sendCreate(t, stream, &pb.WatchCreateRequest{
			Key: []byte("a"), PrevKv: i%2 == 0,
			Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE}[:i%10/9],
		})
		resp := receive(t, stream)
		require.True(t, resp.Created, "got %v", resp)
		require.Equal(t, int64(i), resp.WatchId, "got %v", resp)
	}
	c := s.Client()
	for i := range writes {
		put(t, c, "a", fmt.Sprint(i))
	}
	next := [watchers]int{}
	for range watchers * writes {
		resp := receive(t, stream)
		for _, ev := range resp.Events {
			i := next[resp.WatchId]
			next[resp.WatchId]++
			got, want := string(ev.Kv.Value), fmt.Sprint(i)
			require.Equal(t, want, got, "watcher %d: event %d is %v", resp.WatchId, i, ev)
			require.Equal(t, int64(i+2), ev.Kv.ModRevision, "watcher %d: event %d is %v", resp.WatchId, i, ev)
			require.Equal(t, i > 0 && resp.WatchId%2 == 0, ev.PrevKv != nil, "watcher %d: event %d is %v", resp.WatchId,
				i, ev)
			require.Equal(t, keyspace.MemberID, resp.Header.GetMemberId(), "watcher %d: event %d of a response with %v",
				resp.WatchId, i, resp.Header)
			require.GreaterOrEqual(t, resp.Header.Revision, ev.Kv.ModRevision,
				"watcher %d: event %d of a response with %v", resp.WatchId, i, resp.Header)
		}
		done := true
		for _, n := range next {
			done = done && n == writes
		}
		if done {
			return
		}
	}
	t.Errorf("events of the watchers: %v, expected %d each", next, writes)
}
