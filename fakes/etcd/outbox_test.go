package etcd

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// TestOutbox checks what takes a place of its own in an outbox, and what goes
// with the response before.
func TestOutbox(t *testing.T) {
	news := func(rev int64) delivery {
		return delivery{header: header(rev), events: []*mvccpb.Event{{Kv: &mvccpb.KeyValue{ModRevision: rev}}}}
	}
	first, second := news(2), news(3)
	b := newOutbox(2)
	offer := func(what string, id int64, fragment bool, d delivery, want bool) {
		t.Helper()
		assert.Equal(t, want, b.offer(id, fragment, d), "%s: taken", what)
	}
	take := func() *outgoing {
		t.Helper()
		select {
		case o := <-b.c:
			return b.take(o)
		default:
			t.Fatal("nothing waits")
			return nil
		}
	}
	for id := range int64(1000) {
		offer("the same news for many", id, false, first, true)
	}
	offer("the same in fragments", 1000, true, first, true)
	offer("the same whole again", 1001, false, first, false)
	offer("the same in fragments again", 1001, true, first, true)
	offer("the next news", 0, false, second, false)
	o := take()
	assert.False(t, o.resp.WatchId != 0 || len(o.more) != 999 || o.more[998] != 999, "the first response is for %d and %d more, expected 0 and 999", o.resp.WatchId, len(o.more))
	offer("the next news, with room", 0, false, second, true)
	take()
	assert.Equal(t, int64(3), take().resp.Header.Revision, "the last response is of revision")
	offer("what was taken already", 1, false, second, true)
	o = take()
	assert.Equal(t, int64(1), o.resp.WatchId, "what was taken already went")
	assert.Empty(t, o.more, "what was taken already went")
	for i := range 2 {
		offer("no events", 0, false, delivery{header: header(3)}, true)
		assert.Len(t, b.c, i+1)
	}
}

// TestSharedStream has more watchers on one stream than it buffers responses,
// and no watcher reads until a hundred writes are over: each watcher gets each
// event once and in order.
func TestSharedStream(t *testing.T) {
	const watchers, writes = 50, 100
	s := newServer(t, Config{WatchBuffer: 8})
	stream := watchStream(t, s)
	for i := range watchers {
		sendCreate(t, stream, &pb.WatchCreateRequest{
			Key: []byte("a"), PrevKv: i%2 == 0, Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE}[:i%10/9],
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
			require.Equal(t, i > 0 && resp.WatchId%2 == 0, ev.PrevKv != nil, "watcher %d: event %d is %v", resp.WatchId, i, ev)
			require.Equal(t, memberID, resp.Header.GetMemberId(), "watcher %d: event %d of a response with %v", resp.WatchId, i, resp.Header)
			require.GreaterOrEqual(t, resp.Header.Revision, ev.Kv.ModRevision, "watcher %d: event %d of a response with %v", resp.WatchId, i, resp.Header)
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
