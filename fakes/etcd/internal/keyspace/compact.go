package keyspace

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// compactChunk is how many changes are dropped at a time while writers wait.
const compactChunk = 1024

// Compact returns when the history is gone, so the physical option changes nothing.
func (s *Store) Compact(_ context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	if err := s.beginCompaction(r.Revision); err != nil {
		return nil, err
	}
	for s.forget(r.Revision) {
	}
	return &pb.CompactionResponse{Header: Header(s.Revision())}, nil
}

// beginCompaction makes the revisions before rev unreadable.
func (s *Store) beginCompaction(rev int64) error {
	t, err := s.begin(0)
	if err != nil {
		return err
	}
	defer t.end()
	switch {
	case rev <= s.keys.compactRev:
		return rpctypes.ErrGRPCCompacted
	case rev > s.keys.rev:
		return rpctypes.ErrGRPCFutureRev
	}
	s.keys.compactRev = rev
	s.frozen = nil
	return nil
}

// forget drops a chunk of the history before rev, and the versions it made
// unreadable. It returns false when there is no more to drop.
func (s *Store) forget(rev int64) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The changes of rev itself stay, because a watch may start there. Older versions of their
	// keys go nevertheless, with the last chunk.
	older, end := s.history.from(rev), s.history.from(rev+1)
	if more = older > compactChunk; more {
		older, end = compactChunk, compactChunk
	}
	s.frozen = nil
	for _, c := range s.history[:end] {
		s.keys.compact(string(c.now.kv.Key), rev)
	}
	s.history = s.history.without(older)
	return more
}
