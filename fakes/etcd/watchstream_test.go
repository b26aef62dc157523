package etcd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// watchStream opens a watch stream below clientv3, which hides much of it.
func watchStream(t *testing.T, s *Server) pb.Watch_WatchClient {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	c := dial(t, s)
	stream, err := pb.NewWatchClient(c.ActiveConnection()).Watch(ctx)
	require.NoError(t, err)
	return stream
}

func sendCreate(t *testing.T, stream pb.Watch_WatchClient, r *pb.WatchCreateRequest) {
	t.Helper()
	req := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}
	require.NoError(t, stream.Send(req))
}

func receive(t *testing.T, stream pb.Watch_WatchClient) *pb.WatchResponse {
	t.Helper()
	resp, err := stream.Recv()
	require.NoError(t, err)
	return resp
}

func TestWatchStreamIDs(t *testing.T) {
	s := newServer(t, Config{})
	stream := watchStream(t, s)
	tests := []struct {
		request *pb.WatchCreateRequest
		id      int64
		reason  string
	}{
		{&pb.WatchCreateRequest{Key: []byte("a")}, 0, ""},
		{&pb.WatchCreateRequest{Key: []byte("a"), WatchId: 1}, 1, ""},
		{&pb.WatchCreateRequest{Key: []byte("a")}, 2, ""},
		{&pb.WatchCreateRequest{Key: []byte("a"), WatchId: 2}, -1, "mvcc: duplicate watch ID provided on the " +
			"WatchStream"},
		{&pb.WatchCreateRequest{Key: []byte("b"), RangeEnd: []byte("a")}, -1, "mvcc: watcher range is empty"},
		{&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: -1}, -1, rpctypes.ErrCompacted.Error()},
	}
	for i, tt := range tests {
		sendCreate(t, stream, tt.request)
		resp := receive(t, stream)
		assert.False(t, !resp.Created || resp.WatchId != tt.id || resp.CancelReason != tt.reason ||
			resp.Canceled != (tt.reason != ""), "request %d: %v", i, resp)
	}
	put(t, s.Client(), "a", "1")
	seen := map[int64]bool{}
	for range 3 {
		seen[receive(t, stream).WatchId] = true
	}
	assert.Len(t, seen, 3, "event for watches")
	cancel := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: 1}}}
	require.NoError(t, stream.Send(cancel))
	resp := receive(t, stream)
	assert.False(t, !resp.Canceled || resp.WatchId != 1, "got %v", resp)
	progress := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
	require.NoError(t, stream.Send(progress))
	resp = receive(t, stream)
	assert.Equal(t, int64(-1), resp.WatchId, "got %v", resp)
	assert.Equal(t, int64(2), resp.Header.Revision, "got %v", resp)
	assert.Empty(t, resp.Events, "got %v", resp)
}

func TestWatchStreamFragments(t *testing.T) {
	const limit = 1000
	s := newServer(t, Config{MaxRequestBytes: limit})
	stream := watchStream(t, s)
	for _, fragment := range []bool{true, false} {
		sendCreate(t, stream, &pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("b"), PrevKv: true,
			Fragment: fragment})
		resp := receive(t, stream)
		require.True(t, resp.Created, "got %v", resp)
	}
	// A single revision larger than one message may be.
	c := s.Client()
	const keys = 900
	for i := range keys {
		put(t, c, fmt.Sprintf("a%03d", i), strings.Repeat("v", 700))
	}
	for got := 0; got < 2*keys; {
		got += len(receive(t, stream).Events)
	}
	del(t, c, "a", clientv3.WithPrefix())
	whole, parts, pieces := 0, 0, 0
	for whole+parts < 2*keys {
		resp := receive(t, stream)
		if resp.WatchId == 1 {
			whole += len(resp.Events)
			continue
		}
		pieces++
		parts += len(resp.Events)
		assert.NotEqual(t, parts == keys, resp.Fragment, "fragment %t after %d events", resp.Fragment, parts)
		assert.Less(t, proto.Size(resp), limit+512<<10, "more than gRPC reads, as in etcd")
	}
	assert.Equal(t, keys, whole)
	assert.Equal(t, keys, parts)
	assert.GreaterOrEqual(t, pieces, 2)
}
