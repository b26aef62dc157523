package client

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// streamedKV answers a range as a range stream does.
type streamedKV struct {
	pb.KVClient
	c *client
}

func (l *streamedKV) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	if err := l.c.usable(ctx); err != nil {
		return nil, err
	}
	return l.c.store.RangeForStream(ctx, r)
}

// streamChunk is how many keys a chunk of an in-process range stream has.
const streamChunk = 1000

// kvClient is the clientv3.KV of an in-process client.
type kvClient struct {
	clientv3.KV
	streamed clientv3.KV // answers a Get with all that a GetStream has
}

func newKVClient(c *client, remote pb.KVClient) *kvClient {
	return &kvClient{
		KV:       clientv3.NewKVFromKVClient(remote, c.v3),
		streamed: clientv3.NewKVFromKVClient(&streamedKV{remote, c}, c.v3),
	}
}

// GetStream answers like upstream's, but without a goroutine that would wait
// forever if the caller stopped reading: when it returns, all chunks are in the
// channel. Therefore no compaction can end it halfway, as may happen over gRPC.
func (k *kvClient) GetStream(
	ctx context.Context, key string, opts ...clientv3.OpOption,
) (clientv3.GetStreamChan, error) {
	resp, err := k.streamed.Get(ctx, key, opts...)
	var chunks []clientv3.RangeStreamResponse
	if err != nil {
		// As over the network, the error comes with the first chunk.
		chunks = append(chunks, failedStream(err))
	} else {
		for len(resp.Kvs) > streamChunk {
			chunk := &pb.RangeResponse{Kvs: resp.Kvs[:streamChunk:streamChunk]}
			chunks = append(chunks, clientv3.RangeStreamResponse{RangeResponse: chunk})
			resp.Kvs = resp.Kvs[streamChunk:]
		}
		chunks = append(chunks, clientv3.RangeStreamResponse{RangeResponse: (*pb.RangeResponse)(resp)})
	}
	out := make(chan clientv3.RangeStreamResponse, len(chunks))
	for _, chunk := range chunks {
		out <- chunk
	}
	close(out)
	return out, nil
}
