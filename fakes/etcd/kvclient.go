package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// usable says why a request with ctx cannot be made through c.
func (c *client) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	if c.v3.Ctx().Err() != nil {
		return status.Error(codes.Canceled, "grpc: the client connection is closing")
	}
	return nil
}

// call calls a method of a service on behalf of c.
func call[Q, A any](ctx context.Context, c *client, method func(context.Context, *Q) (*A, error), r *Q) (*A, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	return method(ctx, r)
}

// localKV is the KV service in process: it calls the methods the gRPC server would.
type localKV struct {
	pb.KVClient // nil: only its RangeStream is left, which GetStream does without
	c           *client
	k           *kvService
}

func (l *localKV) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return call(ctx, l.c, l.k.Range, r)
}

func (l *localKV) Put(ctx context.Context, r *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	return call(ctx, l.c, l.k.Put, r)
}

func (l *localKV) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return call(ctx, l.c, l.k.DeleteRange, r)
}

func (l *localKV) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return call(ctx, l.c, l.k.Txn, r)
}

func (l *localKV) Compact(ctx context.Context, r *pb.CompactionRequest, _ ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return call(ctx, l.c, l.k.Compact, r)
}

// streamedKV is localKV, but answers a range as a range stream does.
type streamedKV struct{ localKV }

func (l *streamedKV) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return call(ctx, l.c, l.k.rangeForStream, r)
}

// streamChunk is how many keys a chunk of an in-process range stream has.
const streamChunk = 1000

// kvClient is the clientv3.KV of an in-process client.
type kvClient struct {
	clientv3.KV
	streamed clientv3.KV // answers a Get with all that a GetStream has
}

func newKVClient(c *client) *kvClient {
	local := localKV{c: c, k: &kvService{s: c.s}}
	return &kvClient{
		KV:       clientv3.NewKVFromKVClient(&local, c.v3),
		streamed: clientv3.NewKVFromKVClient(&streamedKV{local}, c.v3),
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
