package etcd

import (
	"context"
	"io"

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

// replay is a server stream whose messages are all known from the start.
type replay[T any] struct {
	grpc.ClientStream
	ctx      context.Context
	messages []*T
	err      error // after the messages, nil: the end
}

func (r *replay[T]) Context() context.Context { return r.ctx }

func (r *replay[T]) Recv() (*T, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	if len(r.messages) == 0 {
		if r.err != nil {
			return nil, r.err
		}
		return nil, io.EOF
	}
	m := r.messages[0]
	r.messages = r.messages[1:]
	return m, nil
}

// localKV is the KV service for an in-process client: it calls the methods that
// the gRPC server would.
type localKV struct {
	c *client
	k *kvService
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

// streamChunk is how many keys a chunk of an in-process range stream has.
const streamChunk = 1000

func (l *localKV) RangeStream(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[pb.RangeStreamResponse], error) {
	resp, err := call(ctx, l.c, l.c.s.rangeForStream, r)
	if err != nil {
		// As over the network, the error comes with the first message.
		return &replay[pb.RangeStreamResponse]{ctx: ctx, err: err}, nil
	}
	var messages []*pb.RangeStreamResponse
	for len(resp.Kvs) > streamChunk {
		chunk := resp.Kvs[:streamChunk:streamChunk]
		messages = append(messages, &pb.RangeStreamResponse{RangeResponse: &pb.RangeResponse{Kvs: chunk}})
		resp.Kvs = resp.Kvs[streamChunk:]
	}
	messages = append(messages, &pb.RangeStreamResponse{RangeResponse: resp})
	return &replay[pb.RangeStreamResponse]{ctx: ctx, messages: messages}, nil
}

// kvClient is the clientv3.KV of an in-process client.
type kvClient struct {
	clientv3.KV
	local *localKV
}

// GetStream answers like upstream's, but without a goroutine that would wait
// forever if the caller stopped reading: when it returns, all chunks are in the
// channel. Therefore no compaction can end it halfway, as may happen over gRPC.
func (k *kvClient) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	stream, err := k.local.RangeStream(ctx, rangeRequest(clientv3.OpGet(key, opts...)))
	if err != nil {
		return nil, clientv3.ContextError(ctx, err)
	}
	var chunks []clientv3.RangeStreamResponse
	for {
		resp, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			chunks = append(chunks, failedStream(clientv3.ContextError(ctx, err)))
			break
		}
		chunks = append(chunks, clientv3.RangeStreamResponse{RangeResponse: resp.RangeResponse})
	}
	out := make(chan clientv3.RangeStreamResponse, len(chunks))
	for _, chunk := range chunks {
		out <- chunk
	}
	close(out)
	return out, nil
}

// rangeRequest returns the request of a Get.
func rangeRequest(op clientv3.Op) *pb.RangeRequest {
	target, order := sortOf(op)
	return &pb.RangeRequest{
		Key: op.KeyBytes(), RangeEnd: op.RangeBytes(), Limit: op.Limit(), Revision: op.Rev(),
		SortTarget: pb.RangeRequest_SortTarget(target), SortOrder: pb.RangeRequest_SortOrder(order),
		Serializable: op.IsSerializable(), KeysOnly: op.IsKeysOnly(), CountOnly: op.IsCountOnly(),
		MinModRevision: op.MinModRev(), MaxModRevision: op.MaxModRev(),
		MinCreateRevision: op.MinCreateRev(), MaxCreateRevision: op.MaxCreateRev(),
	}
}
