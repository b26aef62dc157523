package robustness

import (
	"context"
	"slices"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// staleRead answers one read with an earlier answer to the same read.
func staleRead(truth clientv3.KV, once *atomic.Bool) clientv3.KV {
	return &lyingKV{KV: truth, get: func(ctx context.Context, key string, opts []clientv3.OpOption, tell getFunc) (*clientv3.GetResponse, error) {
		resp, err := tell(ctx, key, opts...)
		rev := clientv3.OpGet(key, opts...).Rev()
		if err != nil || rev != 0 || len(resp.Kvs) == 0 || resp.Kvs[0].Version < 2 || once.Load() {
			return resp, err
		}
		old, err := tell(ctx, key, append(slices.Clone(opts), clientv3.WithRev(resp.Kvs[0].ModRevision-1))...)
		if err != nil {
			return resp, nil // compacted: the next read will do
		}
		once.Store(true)
		old.Header.Revision = resp.Kvs[0].ModRevision - 1
		return old, nil
	}}
}

// otherRevision answers reads at a revision from the one before.
func otherRevision(truth clientv3.KV, _ *atomic.Bool) clientv3.KV {
	return &lyingKV{KV: truth, get: func(ctx context.Context, key string, opts []clientv3.OpOption, tell getFunc) (*clientv3.GetResponse, error) {
		resp, err := tell(ctx, key, opts...)
		rev := clientv3.OpGet(key, opts...).Rev()
		if err != nil || rev < 3 {
			return resp, err
		}
		old, err := tell(ctx, key, append(slices.Clone(opts), clientv3.WithRev(rev-1))...)
		if err != nil || rev >= resp.Header.Revision {
			return resp, nil // that would be a stale read
		}
		old.Header = resp.Header
		return old, nil
	}}
}

// lostWrite acknowledges one put without doing it.
func lostWrite(truth clientv3.KV, once *atomic.Bool) clientv3.KV {
	return &lyingKV{KV: truth, put: func(ctx context.Context, key, value string, opts []clientv3.OpOption) (*clientv3.PutResponse, error) {
		at, err := truth.Get(ctx, key)
		if err != nil || at.Header.Revision < 10 || once.Swap(true) {
			return truth.Put(ctx, key, value, opts...)
		}
		at.Header.Revision++
		return &clientv3.PutResponse{Header: at.Header}, nil
	}}
}

type getFunc func(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)

// lyingKV answers gets and puts in its own way.
type lyingKV struct {
	clientv3.KV
	get func(ctx context.Context, key string, opts []clientv3.OpOption, truth getFunc) (*clientv3.GetResponse, error)
	put func(ctx context.Context, key, value string, opts []clientv3.OpOption) (*clientv3.PutResponse, error)
}

func (k *lyingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if k.get == nil {
		return k.KV.Get(ctx, key, opts...)
	}
	return k.get(ctx, key, opts, k.KV.Get)
}

func (k *lyingKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if k.put == nil {
		return k.KV.Put(ctx, key, value, opts...)
	}
	return k.put(ctx, key, value, opts)
}
