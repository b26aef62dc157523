package etcd

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"
)

// revisionKey returns the key etcd's backend stores a version under.
func revisionKey(v *version) []byte {
	key := make([]byte, 0, 18)
	key = binary.BigEndian.AppendUint64(key, uint64(v.kv.ModRevision))
	key = append(key, '_')
	key = binary.BigEndian.AppendUint64(key, uint64(v.sub))
	if v.tombstone() {
		key = append(key, 't')
	}
	return key
}

// storedValue returns what etcd's backend stores for a version: of a deletion
// it keeps only the key.
func storedValue(v *version) ([]byte, error) {
	kv := proto.CloneOf(&v.kv)
	if v.tombstone() {
		kv.ModRevision = 0
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(kv)
}

// versionsAt returns every version etcd's backend would hold that was written
// up to rev, oldest first.
func versionsAt(k *keyspace, rev int64) []*version {
	var list []*version
	k.tree.Ascend(func(e entry) bool {
		for _, v := range append(slices.Clip(e.rec.older), e.rec.head) {
			if v.kv.ModRevision <= rev {
				list = append(list, v)
			}
		}
		return true
	})
	slices.SortFunc(list, func(a, b *version) int {
		if d := a.kv.ModRevision - b.kv.ModRevision; d != 0 {
			return int(d)
		}
		return int(a.sub - b.sub)
	})
	return list
}

// hashKV computes the hash etcd would give for the same history.
func (s *Server) hashKV(rev int64) (*pb.HashKVResponse, error) {
	k := s.freeze()
	switch {
	case rev > 0 && rev < k.compactRev:
		return nil, rpctypes.ErrGRPCCompacted
	case rev > k.rev:
		return nil, rpctypes.ErrGRPCFutureRev
	case rev == 0:
		rev = k.rev
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	h.Write([]byte("key"))
	live := liveAt(k, rev)
	for _, v := range versionsAt(k, rev) {
		if v.kv.ModRevision <= k.compactRev && (v.tombstone() || len(live) > 0 && !live[v]) {
			// A compaction at rev would drop it. That nothing is skipped when
			// everything would go is etcd's doing.
			continue
		}
		value, err := storedValue(v)
		if err != nil {
			return nil, err
		}
		h.Write(revisionKey(v))
		h.Write(value)
	}
	return &pb.HashKVResponse{
		Header: header(k.rev), Hash: h.Sum32(), CompactRevision: k.compactRev, HashRevision: rev,
	}, nil
}

// liveAt returns the versions current at rev.
func liveAt(k *keyspace, rev int64) map[*version]bool {
	live := make(map[*version]bool)
	k.ascend(span{kind: fromKey}, rev, func(_ string, v *version) bool {
		live[v] = true
		return true
	})
	return live
}
