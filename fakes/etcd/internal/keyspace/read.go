package keyspace

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// LockedScanKeys is how many keys a read may visit while writers wait. A
// longer read starts over in a frozen copy of the key space.
const LockedScanKeys = 512

// scan is what a read wants from the key space.
type scan struct {
	span
	rev       int64 // 0 or less: the current one
	limit     int64 // of the keys returned, 0: none
	countOnly bool
	keysOnly  bool
	visits    int // bounds the number of keys visited, 0: none
}

// found is the outcome of a scan.
type found struct {
	kvs   []*mvccpb.KeyValue
	count int64
	rev   int64 // the current one
	cut   bool  // visits was not enough
}

// readable says why revision rev cannot be read when the current one is cur.
func (k *keyspace) readable(rev, cur int64) error {
	switch {
	case rev > cur:
		return rpctypes.ErrGRPCFutureRev
	case rev > 0 && rev < k.compactRev:
		return rpctypes.ErrGRPCCompacted
	}
	return nil
}

// scan reads at revision q.rev, when the current revision is cur.
func (k *keyspace) scan(q *scan, cur int64) (found, error) {
	f := found{rev: cur}
	if err := k.readable(q.rev, cur); err != nil {
		return f, err
	}
	rev := q.rev
	if rev <= 0 {
		rev = cur
	}
	visited := 0
	k.ascend(q.span, rev, func(_ string, v *version) bool {
		if visited++; visited > q.visits && q.visits > 0 {
			f.cut = true
			return false
		}
		f.count++
		if q.countOnly {
			return true
		}
		if q.limit <= 0 || int64(len(f.kvs)) < q.limit {
			if len(f.kvs) == cap(f.kvs) {
				f.kvs = slices.Grow(f.kvs, len(f.kvs)+1) // append would go in smaller steps
			}
			f.kvs = append(f.kvs, q.pick(v))
		}
		return true
	})
	return f, nil
}

// pick returns what a scan returns for v: without a lease if keys-only, as in etcd.
func (q *scan) pick(v *version) *mvccpb.KeyValue {
	if v != nil && !q.keysOnly { // compared, or the compiler would fetch v to see that it is not nil
		return &v.kv
	}
	return withoutValue(&v.kv, 0)
}

// withoutValue returns what is left of a key without its value.
func withoutValue(kv *mvccpb.KeyValue, lease int64) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{
		Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version, Lease: lease,
	}
}

// scan reads the current key space; writers wait for no longer than a few keys take.
func (s *Store) scan(q *scan) (found, error) {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return found{}, rpctypes.ErrGRPCStopped
	}
	q.visits = LockedScanKeys
	f, err := s.keys.scan(q, s.keys.rev)
	s.mu.RUnlock()
	if err != nil || !f.cut {
		return f, err
	}
	q.visits = 0
	s.mu.Lock()
	k := s.freeze()
	s.mu.Unlock()
	return k.scan(q, k.rev)
}

// scanFor translates a range request.
func scanFor(r *pb.RangeRequest) *scan {
	q := &scan{
		span:      spanOf(r.Key, r.RangeEnd),
		rev:       r.Revision,
		limit:     r.Limit,
		countOnly: r.CountOnly,
		keysOnly:  r.KeysOnly && r.SortTarget != pb.RangeRequest_VALUE,
	}
	switch {
	case !defaultOrdering(r) || revisionFilters(r):
		q.limit = 0
	case r.Limit > 0 && r.Limit < math.MaxInt64:
		q.limit++ // one more shows whether there are more
	}
	return q
}

// answer makes the response to r of what its scan found.
func answer(r *pb.RangeRequest, f found) *pb.RangeResponse {
	filter(r, &f)
	order(r, f.kvs)
	resp := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: f.rev}, Count: f.count}
	if r.Limit > 0 && int64(len(f.kvs)) > r.Limit {
		f.kvs = f.kvs[:r.Limit]
		resp.More = true
	}
	if r.KeysOnly && r.SortTarget == pb.RangeRequest_VALUE {
		for i, kv := range f.kvs {
			f.kvs[i] = withoutValue(kv, kv.Lease)
		}
	}
	resp.Kvs = f.kvs
	return resp
}

func defaultOrdering(r *pb.RangeRequest) bool {
	return r.SortOrder == pb.RangeRequest_NONE ||
		r.SortTarget == pb.RangeRequest_KEY && r.SortOrder == pb.RangeRequest_ASCEND
}

func revisionFilters(r *pb.RangeRequest) bool {
	return r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
}

// filter drops keys outside r's revision bounds. As in etcd, they still count.
func filter(r *pb.RangeRequest, f *found) {
	if !revisionFilters(r) {
		return
	}
	within := func(rev, lowest, highest int64) bool {
		return (lowest == 0 || rev >= lowest) && (highest == 0 || rev <= highest)
	}
	f.kvs = slices.DeleteFunc(f.kvs, func(kv *mvccpb.KeyValue) bool {
		return !within(kv.ModRevision, r.MinModRevision, r.MaxModRevision) ||
			!within(kv.CreateRevision, r.MinCreateRevision, r.MaxCreateRevision)
	})
}

// order sorts kvs, which are in the order of their keys, as r asks.
func order(r *pb.RangeRequest, kvs []*mvccpb.KeyValue) {
	descend := r.SortOrder == pb.RangeRequest_DESCEND
	if !descend && r.SortTarget == pb.RangeRequest_KEY {
		return
	}
	var compare func(a, b *mvccpb.KeyValue) int
	switch r.SortTarget {
	case pb.RangeRequest_KEY:
		compare = func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) }
	case pb.RangeRequest_VERSION:
		compare = func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.Version, b.Version) }
	case pb.RangeRequest_CREATE:
		compare = func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) }
	case pb.RangeRequest_MOD:
		compare = func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) }
	case pb.RangeRequest_VALUE:
		compare = func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Value, b.Value) }
	}
	// It has the algorithm of etcd's sort.Sort, so that equal keys end up in the same order.
	sort.Slice(kvs, func(i, j int) bool {
		if descend {
			i, j = j, i
		}
		return compare(kvs[i], kvs[j]) < 0
	})
}

func (s *Store) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	f, err := s.scan(scanFor(r))
	if err != nil {
		return nil, err
	}
	resp := answer(r, f)
	resp.Header = Header(resp.Header.Revision)
	return resp, nil
}

// RangeForStream answers a range stream as a whole, of which the chunks are parts.
func (s *Store) RangeForStream(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	if !defaultOrdering(r) {
		return nil, status.Error(codes.Unimplemented, "RangeStream does not support custom sort orders")
	}
	if revisionFilters(r) {
		return nil, status.Error(codes.Unimplemented, "RangeStream does not support revision filters")
	}
	return s.Range(ctx, r)
}

// CheckReadable says why revision rev can no longer be read.
func (s *Store) CheckReadable(rev int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return rpctypes.ErrGRPCStopped
	}
	return s.keys.readable(rev, s.keys.rev)
}
