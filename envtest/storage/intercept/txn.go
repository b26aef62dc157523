package intercept

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// txn is a transaction, which is asked about when it is committed.
type txn struct {
	kv   *kv
	ctx  context.Context
	cmps []clientv3.Cmp
	then []clientv3.Op
	els  []clientv3.Op
}

// If implements clientv3.Txn.
func (t *txn) If(cmps ...clientv3.Cmp) clientv3.Txn {
	t.cmps = append(t.cmps, cmps...)
	return t
}

// Then implements clientv3.Txn.
func (t *txn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.then = append(t.then, ops...)
	return t
}

// Else implements clientv3.Txn.
func (t *txn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.els = append(t.els, ops...)
	return t
}

// Commit implements clientv3.Txn. What is committed twice is two transactions.
func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	compares := make([]*pb.Compare, len(t.cmps))
	for i := range t.cmps {
		compares[i] = t.cmps[i].GetCompare()
	}
	var first subject
	if len(t.then) > 0 {
		first = subject{pointOf(t.then[0]), string(t.then[0].KeyBytes())}
	}
	s := subjectOfTxn(compares, len(t.then), first)
	return call(t.ctx, t.kv.decorator, s.point, s.key, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return t.kv.KV.Txn(ctx).If(t.cmps...).Then(t.then...).Else(t.els...).Commit()
	})
}

// subject is what a call to the store is about.
type subject struct{ point, key string }

// subjectOfTxn is what a transaction is about that compares, and then does a number
// of things of which first is the first. One that is a write on condition of a
// revision, as upstream's client makes it, is that write.
func subjectOfTxn(compares []*pb.Compare, things int, first subject) subject {
	s := subject{"store/txn", first.key}
	if len(compares) > 0 {
		s.key = string(compares[0].GetKey())
	}
	isWrite := first.point == "store/put" || first.point == "store/delete"
	if isWrite && things == 1 && len(compares) == 1 && compares[0].GetTarget() == pb.Compare_MOD {
		s.point = first.point
	}
	return s
}
