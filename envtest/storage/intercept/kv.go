package intercept

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// kv is the rest of what is asked of the keys.
type kv struct {
	clientv3.KV
	*decorator
}

// Get implements clientv3.KV.
func (k *kv) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return call(ctx, k.decorator, pointOf(clientv3.OpGet(key, opts...)), key, func(ctx context.Context) (*clientv3.GetResponse, error) {
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
	stream, err := call(streaming, k.decorator, "store/list", key, get)
	if err != nil {
		end()
		return nil, err
	}
	context.AfterFunc(ctx, end)
	return stream, nil
}

// Put implements clientv3.KV.
func (k *kv) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return call(ctx, k.decorator, "store/put", key, func(ctx context.Context) (*clientv3.PutResponse, error) {
		return k.KV.Put(ctx, key, value, opts...)
	})
}

// Delete implements clientv3.KV.
func (k *kv) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return call(ctx, k.decorator, "store/delete", key, func(ctx context.Context) (*clientv3.DeleteResponse, error) {
		return k.KV.Delete(ctx, key, opts...)
	})
}

// Do implements clientv3.KV.
func (k *kv) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	return call(ctx, k.decorator, pointOf(op), string(op.KeyBytes()), func(ctx context.Context) (clientv3.OpResponse, error) {
		return k.KV.Do(ctx, op)
	})
}

// Compact implements clientv3.KV.
func (k *kv) Compact(ctx context.Context, revision int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return call(ctx, k.decorator, "store/compact", "", func(ctx context.Context) (*clientv3.CompactResponse, error) {
		return k.KV.Compact(ctx, revision, opts...)
	})
}

// Txn implements clientv3.KV.
func (k *kv) Txn(ctx context.Context) clientv3.Txn { return &txn{kv: k, ctx: ctx} }

// pointOf is the point of a single operation.
func pointOf(op clientv3.Op) string {
	switch {
	case op.IsPut():
		return "store/put"
	case op.IsDelete():
		return "store/delete"
	case op.IsTxn():
		return "store/txn"
	default:
		return readPoint(op.IsCountOnly(), len(op.RangeBytes()) > 0)
	}
}

// readPoint is the point of a read: of a number of keys, of a range of them, or of
// one.
func readPoint(countOnly, ranges bool) string {
	switch {
	case countOnly:
		return "store/count"
	case ranges:
		return "store/list"
	default:
		return "store/range"
	}
}
