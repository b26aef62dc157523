package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

// compactChunk is how many changes are dropped at a time while writers wait.
const compactChunk = 1024

// compact answers a Compact request. It always returns after the history is
// gone, so the physical option changes nothing.
func (s *Server) compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, rpctypes.ErrGRPCStopped
	}
	s.raftIndex.Add(1)
	err := s.alarmed(false)
	switch {
	case err != nil:
	case r.Revision <= s.keys.compactRev:
		err = rpctypes.ErrGRPCCompacted
	case r.Revision > s.keys.rev:
		err = rpctypes.ErrGRPCFutureRev
	default:
		s.keepHash(r.Revision)
		s.keys.compactRev = r.Revision
		s.frozen = nil
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for s.forget(r.Revision) {
	}
	return &pb.CompactionResponse{Header: header(s.Revision())}, nil
}

// forget drops a chunk of the history before rev, and the versions it made
// unreadable. It returns false when there is no more to drop.
func (s *Server) forget(rev int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.history
	// The changes of rev itself stay, because a watch may start there. Older
	// versions of their keys go nevertheless, with the last chunk.
	start, last, end := h.first, h.from(rev), h.from(rev+1)
	more := start+compactChunk < last
	if more {
		end = start + compactChunk
	}
	s.frozen = nil
	for i := start; i < end; i++ {
		s.keys.compact(string(h.at(i).now.kv.Key), rev)
	}
	h.dropBefore(min(end, last))
	return more
}
