package services

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// TestOutbox checks what takes a place of its own in an outbox, and what goes
// with the response before.
func TestOutbox(t *testing.T) {
	news := func(rev int64) clientv3.WatchResponse {
		return clientv3.WatchResponse{Header: keyspace.Header(rev),
			Events: []*mvccpb.Event{{Kv: &mvccpb.KeyValue{ModRevision: rev}}}}
	}
	first, second := news(2), news(3)
	b := newOutbox(2)
	offer := func(what string, id int64, fragment bool, r clientv3.WatchResponse, want bool) {
		t.Helper()
		assert.Equal(t, want, b.offer(id, fragment, r), "%s: taken", what)
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
	assert.False(t, o.resp.WatchId != 0 || len(o.more) != 999 || o.more[998] != 999,
		"the first response is for %d and %d more, expected 0 and 999", o.resp.WatchId, len(o.more))
	offer("the next news, with room", 0, false, second, true)
	take()
	assert.Equal(t, int64(3), take().resp.Header.Revision, "the last response is of revision")
	offer("what was taken already", 1, false, second, true)
	o = take()
	assert.Equal(t, int64(1), o.resp.WatchId, "what was taken already went")
	assert.Empty(t, o.more, "what was taken already went")
	for i := range 2 {
		offer("no events", 0, false, clientv3.WatchResponse{Header: keyspace.Header(3)}, true)
		assert.Len(t, b.c, i+1)
	}
}
