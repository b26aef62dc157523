package services

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// initialChunkKeys is how many keys the first chunk of a range stream has.
const initialChunkKeys = 10

// kvService answers the KV service.
type kvService struct {
	*keyspace.Store
	maxRequestBytes int
	pb.UnsafeKVServer
}

// RangeStream sends a range in chunks as etcd does: small ones first, then about as
// large as a request may be, and only the last has a header. etcd reads each chunk
// when it sends it, and fails if the revision was compacted meanwhile; here all
// keys are read at the start, and only the compaction is checked for each chunk.
func (k *kvService) RangeStream(r *pb.RangeRequest, stream grpc.ServerStreamingServer[pb.RangeStreamResponse]) error {
	resp, err := k.RangeForStream(stream.Context(), r)
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
		if err := k.CheckReadable(rev); err != nil {
			return err
		}
		size = nextChunk(size, proto.Size(chunk), k.maxRequestBytes)
	}
	return stream.Send(&pb.RangeStreamResponse{RangeResponse: resp})
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
