package etcd

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// appendRevisionKey appends the key etcd's backend stores a version under.
func appendRevisionKey(key []byte, v *version) []byte {
	key = binary.BigEndian.AppendUint64(key, uint64(v.kv.ModRevision))
	key = append(key, '_')
	key = binary.BigEndian.AppendUint64(key, uint64(v.sub))
	if v.tombstone() {
		key = append(key, 't')
	}
	return key
}

// appendStored appends what etcd's backend stores for v: of a deletion, only the key.
func appendStored(b []byte, v *version) []byte {
	if v.tombstone() {
		return appendBytes(b, keyValueKey, v.kv.Key)
	}
	return appendKeyValue(b, &v.kv)
}

// stored is a version in etcd's backend, with a copy of its sort key, which
// sorting would otherwise fetch from all over the memory.
type stored struct {
	*version
	rev  int64
	sub  int32
	live bool // the key's current one at the revision asked about
}

// storedAt returns the versions up to rev that are in etcd's backend, oldest first.
func storedAt(k *keyspace, rev int64) []stored {
	list := make([]stored, 0, k.tree.Len())
	k.tree.Ascend(func(e entry) bool {
		live := e.rec.at(rev)
		for _, v := range e.rec.older {
			if v.kv.ModRevision <= rev {
				list = append(list, stored{v, v.kv.ModRevision, v.sub, v == live})
			}
		}
		if e.rec.since <= rev {
			list = append(list, stored{e.rec.head, e.rec.since, e.rec.head.sub, live != nil})
		}
		return true
	})
	slices.SortFunc(list, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.rev, b.rev), cmp.Compare(a.sub, b.sub))
	})
	return list
}

// maxCompactionHashes is how many of its compactions' hashes etcd keeps.
const maxCompactionHashes = 10

// compactionHash is the hash that etcd takes when it is about to compact.
type compactionHash struct {
	revision, compacted int64
	// sum computes the hash, when it is first asked for it.
	sum func() uint32
}

// HashKV answers, for a revision at which the store was compacted, the hash from
// just before the compaction, as etcd does.
func (m *maintenanceService) HashKV(_ context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	rev := r.Revision
	k, kept := m.s.freezeWithHashes()
	resp := &pb.HashKVResponse{Header: header(k.rev), CompactRevision: k.compactRev, HashRevision: rev}
	for _, h := range kept {
		if h.revision == rev {
			resp.Hash, resp.CompactRevision = h.sum(), h.compacted
			return resp, nil
		}
	}
	switch {
	case rev > 0 && rev < k.compactRev:
		return nil, rpctypes.ErrGRPCCompacted
	case rev > k.rev:
		return nil, rpctypes.ErrGRPCFutureRev
	case rev == 0:
		resp.HashRevision = k.rev
	}
	resp.Hash = k.hash(resp.HashRevision, false)
	return resp, nil
}

// freezeWithHashes returns the frozen key space, and the hashes of its compactions.
func (s *Server) freezeWithHashes() (*keyspace, []compactionHash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freeze(), s.compactionHashes
}

// keepHash keeps the hash for a compaction at rev about to begin, and forgets that of
// the lowest revision if there are too many. It is computed meanwhile, or its copy of
// the key space would keep what is compacted in memory. The server is locked.
func (s *Server) keepHash(rev int64) {
	before := s.freeze()
	h := compactionHash{rev, before.compactRev, sync.OnceValue(func() uint32 { return before.hash(rev, true) })}
	s.work.Go(func() { h.sum() })
	kept := append(slices.Clone(s.compactionHashes), h)
	slices.SortFunc(kept, func(a, b compactionHash) int { return cmp.Compare(a.revision, b.revision) })
	s.compactionHashes = kept[max(0, len(kept)-maxCompactionHashes):]
}

// hash computes the hash etcd would give for the same history up to rev, or the
// one it takes when it is about to compact at rev.
func (k *keyspace) hash(rev int64, compacting bool) uint32 {
	versions := storedAt(k, rev)
	// Both rules are etcd's: nothing is skipped if everything would be, and a
	// deletion at rev itself counts as something left only in a compaction.
	left := slices.ContainsFunc(versions, func(v stored) bool {
		return v.live || compacting && v.rev == rev && v.tombstone() && !v.superseded
	})
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	h.Write([]byte("key"))
	var buffer []byte
	for _, v := range versions {
		if v.rev <= k.compactRev && (v.tombstone() || left && !v.live) {
			continue // a compaction at rev would drop it
		}
		buffer = appendStored(appendRevisionKey(buffer[:0], v.version), v.version)
		h.Write(buffer)
	}
	return h.Sum32()
}
