package keyspace

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func (s *Store) Txn(_ context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := checkTxn(r, s.cfg.MaxTxnOps); err != nil {
		return nil, err
	}
	for _, branch := range [][]*pb.RequestOp{r.Success, r.Failure} {
		if _, _, err := checkOverlap(branch); err != nil {
			return nil, err
		}
	}
	if readOnly(r) {
		return s.readTxn(r)
	}
	if err := s.checkSize(r, s.cfg.MaxRequestBytes); err != nil {
		return nil, err
	}
	t, err := s.begin(txnCost(r))
	if err != nil {
		return nil, err
	}
	defer t.end()
	return t.runTxn(r)
}

// txnCost is how many bytes the branch of r takes that takes more, 0 if neither puts a key.
func txnCost(r *pb.TxnRequest) int {
	branch := func(ops []*pb.RequestOp) (cost int) {
		for _, op := range ops {
			if put := op.GetRequestPut(); put != nil {
				cost += putCost(put)
			} else if txn := op.GetRequestTxn(); txn != nil {
				cost += txnCost(txn)
			}
		}
		return cost
	}
	return max(branch(r.Success), branch(r.Failure))
}

// readTxn answers a transaction that only reads.
func (s *Store) readTxn(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, rpctypes.ErrGRPCStopped
	}
	return (&writeTxn{s: s}).runTxn(r)
}

// runTxn does all of a transaction, or nothing.
func (t *writeTxn) runTxn(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	plan, err := t.s.decide(r)
	if err != nil {
		return nil, err
	}
	resp := t.applyTxn(r, plan)
	resp.Header = Header(t.rev())
	return resp, nil
}

// readOnly reports whether r has only ranges; to etcd a nested transaction is none.
func readOnly(r *pb.TxnRequest) bool {
	for _, branch := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range branch {
			if op.GetRequestRange() == nil {
				return false
			}
		}
	}
	return true
}

// plan says which branches a transaction and the transactions nested in it take.
// The state before the transaction decides all of them.
type plan struct {
	succeeded bool
	nested    []*plan // one for each nested transaction in the branch
}

// branch returns the operations that p chose.
func (p *plan) branch(r *pb.TxnRequest) []*pb.RequestOp {
	if p.succeeded {
		return r.GetSuccess()
	}
	return r.GetFailure()
}

// decide evaluates the compares of r, and says why an operation of the chosen branches
// cannot be done.
func (s *Store) decide(r *pb.TxnRequest) (*plan, error) {
	p := &plan{succeeded: !slices.ContainsFunc(r.GetCompare(), func(c *pb.Compare) bool { return !s.keys.holds(c) })}
	for _, op := range p.branch(r) {
		var err error
		switch v := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			err = s.keys.txnReadable(v.RequestRange.GetRevision())
		case *pb.RequestOp_RequestPut:
			err = s.puttable(v.RequestPut)
		case *pb.RequestOp_RequestTxn:
			var nested *plan
			nested, err = s.decide(v.RequestTxn)
			p.nested = append(p.nested, nested)
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// txnReadable is readable for a range in a transaction, where etcd takes a
// negative revision literally when it checks whether it is compacted.
func (k *keyspace) txnReadable(rev int64) error {
	if rev < 0 && rev < k.compactRev {
		return rpctypes.ErrGRPCCompacted
	}
	return k.readable(rev, k.rev)
}

// applyTxn does the operations of the chosen branches, which are feasible.
func (t *writeTxn) applyTxn(r *pb.TxnRequest, p *plan) *pb.TxnResponse {
	ops := p.branch(r)
	resp := &pb.TxnResponse{
		// Only the outermost header is ever filled.
		Header:    &pb.ResponseHeader{},
		Succeeded: p.succeeded,
		Responses: make([]*pb.ResponseOp, len(ops)),
	}
	nested := p.nested
	for i, op := range ops {
		switch v := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			f, _ := t.s.keys.scan(scanFor(v.RequestRange), t.rev()) // its revision can be read
			resp.Responses[i] = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{
				ResponseRange: answer(v.RequestRange, f)}}
		case *pb.RequestOp_RequestPut:
			resp.Responses[i] = &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{
				ResponsePut: t.applyPut(v.RequestPut)}}
		case *pb.RequestOp_RequestDeleteRange:
			resp.Responses[i] = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{
				ResponseDeleteRange: t.applyDelete(v.RequestDeleteRange)}}
		case *pb.RequestOp_RequestTxn:
			inner := t.applyTxn(v.RequestTxn, nested[0])
			nested = nested[1:]
			resp.Responses[i] = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: inner}}
		}
	}
	return resp
}

// holds evaluates one compare. With a range it has to hold for every key.
func (k *keyspace) holds(c *pb.Compare) bool {
	some, all := false, true
	k.ascend(spanOf(c.Key, c.RangeEnd), k.rev, func(_ string, v *version) bool {
		some = true
		all = compareKV(c, &v.kv)
		return all
	})
	if some {
		return all
	}
	if c.Target == pb.Compare_VALUE {
		// A missing value equals nothing, not even the empty value.
		return false
	}
	return compareKV(c, &mvccpb.KeyValue{})
}

// compareKV evaluates a compare for one key.
func compareKV(c *pb.Compare, kv *mvccpb.KeyValue) bool {
	var order int
	switch c.Target {
	case pb.Compare_VALUE:
		order = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		order = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		order = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_VERSION:
		order = cmp.Compare(kv.Version, c.GetVersion())
	case pb.Compare_LEASE:
		order = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return order == 0
	case pb.Compare_NOT_EQUAL:
		return order != 0
	case pb.Compare_GREATER:
		return order > 0
	case pb.Compare_LESS:
		return order < 0
	}
	return true
}
