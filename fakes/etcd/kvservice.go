package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// initialChunkKeys is how many keys the first chunk of a range stream has.
const initialChunkKeys = 10

// kvService answers the KV service.
type kvService struct {
	s *Server
	pb.UnsafeKVServer
}

// RangeStream sends a range in chunks as etcd does: small ones first, then about as
// large as a request may be, and only the last has a header. etcd reads each chunk
// when it sends it, and fails if the revision was compacted meanwhile; here all
// keys are read at the start, and only the compaction is checked for each chunk.
func (k *kvService) RangeStream(r *pb.RangeRequest, stream grpc.ServerStreamingServer[pb.RangeStreamResponse]) error {
	resp, err := k.rangeForStream(stream.Context(), r)
	if err != nil {
		return err
	}
	rev := r.Revision
	if rev <= 0 {
		rev = resp.Header.Revision
	}
	size := initialChunkKeys
	for len(resp.Kvs) > size {
		chunk := &pb.RangeResponse{Kvs: resp.Kvs[:size]}
		resp.Kvs = resp.Kvs[size:]
		if err := stream.Send(&pb.RangeStreamResponse{RangeResponse: chunk}); err != nil {
			return err
		}
		if err := k.s.checkReadable(rev); err != nil {
			return err
		}
		size = nextChunk(size, proto.Size(chunk), k.s.cfg.MaxRequestBytes)
	}
	return stream.Send(&pb.RangeStreamResponse{RangeResponse: resp})
}

// checkReadable says why revision rev can no longer be read.
func (s *Server) checkReadable(rev int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return rpctypes.ErrGRPCStopped
	}
	return s.keys.readable(rev, s.keys.rev)
}

// nextChunk returns how many keys follow a chunk of so many keys and bytes.
func nextChunk(keys, size, target int) int {
	switch {
	case size < target/2:
		return keys * 2
	case size > target*2:
		return max(keys/2, 1)
	}
	return keys
}

// rangeForStream answers a range stream as a whole, of which the chunks are parts.
func (k *kvService) rangeForStream(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	if !defaultOrdering(r) {
		return nil, status.Error(codes.Unimplemented, "RangeStream does not support custom sort orders")
	}
	if revisionFilters(r) {
		return nil, status.Error(codes.Unimplemented, "RangeStream does not support revision filters")
	}
	return k.Range(ctx, r)
}
