package intercept

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// kv is the rest of what is asked of the keys.
type kv struct {
	clientv3.KV
	*decorator
}

// Get implements clientv3.KV.
func (k *kv) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return call(ctx, k.decorator, subjectOfOp(clientv3.OpGet(key, opts...)), func(ctx context.Context) (*clientv3.GetResponse, error) {
		return k.KV.Get(ctx, key, opts...)
	})
}

// GetStream implements clientv3.KV. A stream whose answer is lost is ended.
func (k *kv) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	get := func(ctx context.Context) (clientv3.GetStreamChan, error) { return k.KV.GetStream(ctx, key, opts...) }
	if !k.injector.Active() {
		return send(ctx, k.conn, func() (clientv3.GetStreamChan, error) { return get(ctx) })
	}
	streaming, end := context.WithCancel(ctx)
	stream, err := call(streaming, k.decorator, subject{"store/list", key}, get)
	if err != nil {
		end()
		return nil, err
	}
	context.AfterFunc(ctx, end)
	return stream, nil
}

// Put implements clientv3.KV.
func (k *kv) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return call(ctx, k.decorator, subject{"store/put", key}, func(ctx context.Context) (*clientv3.PutResponse, error) {
		return k.KV.Put(ctx, key, value, opts...)
	})
}

// Delete implements clientv3.KV.
func (k *kv) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return call(ctx, k.decorator, subject{"store/delete", key}, func(ctx context.Context) (*clientv3.DeleteResponse, error) {
		return k.KV.Delete(ctx, key, opts...)
	})
}

// Do implements clientv3.KV.
func (k *kv) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	return call(ctx, k.decorator, subjectOfOp(op), func(ctx context.Context) (clientv3.OpResponse, error) {
		return k.KV.Do(ctx, op)
	})
}

// Compact implements clientv3.KV.
func (k *kv) Compact(ctx context.Context, revision int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return call(ctx, k.decorator, subject{point: "store/compact"}, func(ctx context.Context) (*clientv3.CompactResponse, error) {
		return k.KV.Compact(ctx, revision, opts...)
	})
}

// Txn implements clientv3.KV.
func (k *kv) Txn(ctx context.Context) clientv3.Txn { return &txn{kv: k, ctx: ctx} }

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
		first = subjectOfOp(t.then[0])
	}
	s := subjectOfTxn(compares, len(t.then), first)
	return call(t.ctx, t.kv.decorator, s, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return t.kv.KV.Txn(ctx).If(t.cmps...).Then(t.then...).Else(t.els...).Commit()
	})
}
