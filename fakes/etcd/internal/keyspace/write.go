package keyspace

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func (s *Store) Put(_ context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	if err := checkPut(r); err != nil {
		return nil, err
	}
	if err := s.checkSize(r, len(r.Key)+len(r.Value)); err != nil {
		return nil, err
	}
	t, err := s.begin(putCost(r))
	if err != nil {
		return nil, err
	}
	defer t.end()
	if err := s.puttable(r); err != nil {
		return nil, err
	}
	resp := t.applyPut(r)
	resp.Header = Header(resp.Header.Revision)
	return resp, nil
}

// puttable says why r cannot be done in the present state.
func (s *Store) puttable(r *pb.PutRequest) error {
	if r.Lease != 0 && s.leases.lookup(r.Lease) == nil {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	if (r.IgnoreValue || r.IgnoreLease) && s.keys.live(string(r.Key)) == nil {
		return rpctypes.ErrGRPCKeyNotFound
	}
	return nil
}

func (t *writeTxn) applyPut(r *pb.PutRequest) *pb.PutResponse {
	key, value, lease := string(r.Key), r.Value, r.Lease
	resp := &pb.PutResponse{Header: &pb.ResponseHeader{Revision: t.s.keys.rev + 1}}
	if r.IgnoreValue || r.IgnoreLease || r.PrevKv {
		if prev := t.s.keys.live(key); prev != nil {
			if r.IgnoreValue {
				value = prev.kv.Value
			}
			if r.IgnoreLease {
				lease = prev.kv.Lease
			}
			if r.PrevKv {
				resp.PrevKv = &prev.kv
			}
		}
	}
	t.put(key, t.s.keys.record(key), r.Key, value, lease)
	return resp
}

func (s *Store) DeleteRange(_ context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := checkDelete(r); err != nil {
		return nil, err
	}
	if err := s.checkSize(r, len(r.Key)+len(r.RangeEnd)); err != nil {
		return nil, err
	}
	t, err := s.begin(0)
	if err != nil {
		return nil, err
	}
	defer t.end()
	resp := t.applyDelete(r)
	resp.Header = Header(resp.Header.Revision)
	return resp, nil
}

func (t *writeTxn) applyDelete(r *pb.DeleteRangeRequest) *pb.DeleteRangeResponse {
	prev := t.deleteRange(spanOf(r.Key, r.RangeEnd))
	resp := &pb.DeleteRangeResponse{
		Header:  &pb.ResponseHeader{Revision: t.rev()},
		Deleted: int64(len(prev)),
	}
	if r.PrevKv {
		resp.PrevKvs = prev
	}
	return resp
}

// putCost is how many bytes r takes, about.
func putCost(r *pb.PutRequest) int { return keyCost + len(r.Key) + len(r.Value) }
