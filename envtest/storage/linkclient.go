package storage

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// linkedKubernetes is the interface that Kubernetes uses, by a Link.
type linkedKubernetes struct {
	kubernetes.Interface
	link *Link
}

// Get implements kubernetes.Interface.
func (k linkedKubernetes) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	return over(ctx, k.link, func() (kubernetes.GetResponse, error) { return k.Interface.Get(ctx, key, opts) })
}

// List implements kubernetes.Interface.
func (k linkedKubernetes) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	return over(ctx, k.link, func() (kubernetes.ListResponse, error) { return k.Interface.List(ctx, prefix, opts) })
}

// Count implements kubernetes.Interface.
func (k linkedKubernetes) Count(ctx context.Context, prefix string, opts kubernetes.CountOptions) (int64, error) {
	return over(ctx, k.link, func() (int64, error) { return k.Interface.Count(ctx, prefix, opts) })
}

// OptimisticPut implements kubernetes.Interface.
func (k linkedKubernetes) OptimisticPut(ctx context.Context, key string, value []byte, expected int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	return over(ctx, k.link, func() (kubernetes.PutResponse, error) {
		return k.Interface.OptimisticPut(ctx, key, value, expected, opts)
	})
}

// OptimisticDelete implements kubernetes.Interface.
func (k linkedKubernetes) OptimisticDelete(ctx context.Context, key string, expected int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	return over(ctx, k.link, func() (kubernetes.DeleteResponse, error) {
		return k.Interface.OptimisticDelete(ctx, key, expected, opts)
	})
}

// linkedKV is a KV by a Link.
type linkedKV struct {
	clientv3.KV
	link *Link
}

// Put implements clientv3.KV.
func (k linkedKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return over(ctx, k.link, func() (*clientv3.PutResponse, error) { return k.KV.Put(ctx, key, value, opts...) })
}

// Get implements clientv3.KV.
func (k linkedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return over(ctx, k.link, func() (*clientv3.GetResponse, error) { return k.KV.Get(ctx, key, opts...) })
}

// GetStream implements clientv3.KV.
func (k linkedKV) GetStream(ctx context.Context, key string, opts ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return over(ctx, k.link, func() (clientv3.GetStreamChan, error) { return k.KV.GetStream(ctx, key, opts...) })
}

// Delete implements clientv3.KV.
func (k linkedKV) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return over(ctx, k.link, func() (*clientv3.DeleteResponse, error) { return k.KV.Delete(ctx, key, opts...) })
}

// Compact implements clientv3.KV.
func (k linkedKV) Compact(ctx context.Context, revision int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return over(ctx, k.link, func() (*clientv3.CompactResponse, error) { return k.KV.Compact(ctx, revision, opts...) })
}

// Do implements clientv3.KV.
func (k linkedKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	return over(ctx, k.link, func() (clientv3.OpResponse, error) { return k.KV.Do(ctx, op) })
}

// Txn implements clientv3.KV.
func (k linkedKV) Txn(ctx context.Context) clientv3.Txn {
	return &linkedTxn{k.KV.Txn(ctx), ctx, k.link}
}

// linkedTxn is a transaction by a Link.
type linkedTxn struct {
	clientv3.Txn
	ctx  context.Context
	link *Link
}

// If implements clientv3.Txn.
func (t *linkedTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(conditions...)
	return t
}

// Then implements clientv3.Txn.
func (t *linkedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	return t
}

// Else implements clientv3.Txn.
func (t *linkedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

// Commit implements clientv3.Txn.
func (t *linkedTxn) Commit() (*clientv3.TxnResponse, error) { return over(t.ctx, t.link, t.Txn.Commit) }

// linkedLease is a Lease by a Link. Of its methods those are linked that an API
// server calls.
type linkedLease struct {
	clientv3.Lease
	link *Link
}

// Grant implements clientv3.Lease.
func (l linkedLease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return over(ctx, l.link, func() (*clientv3.LeaseGrantResponse, error) { return l.Lease.Grant(ctx, ttl) })
}

// Revoke implements clientv3.Lease.
func (l linkedLease) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return over(ctx, l.link, func() (*clientv3.LeaseRevokeResponse, error) { return l.Lease.Revoke(ctx, id) })
}

// TimeToLive implements clientv3.Lease.
func (l linkedLease) TimeToLive(ctx context.Context, id clientv3.LeaseID, opts ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	return over(ctx, l.link, func() (*clientv3.LeaseTimeToLiveResponse, error) { return l.Lease.TimeToLive(ctx, id, opts...) })
}

// KeepAliveOnce implements clientv3.Lease.
func (l linkedLease) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return over(ctx, l.link, func() (*clientv3.LeaseKeepAliveResponse, error) { return l.Lease.KeepAliveOnce(ctx, id) })
}

// linkedWatcher is a Watcher by a Link.
type linkedWatcher struct {
	clientv3.Watcher
	link *Link
}

// Watch implements clientv3.Watcher.
func (w linkedWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	var in clientv3.WatchChan
	if w.link.Err() == nil {
		in = w.Watcher.Watch(ctx, key, opts...)
	}
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		if in == nil {
			if w.link.pass(ctx) != nil {
				return
			}
			in = w.Watcher.Watch(ctx, key, opts...)
		}
		for response := range in {
			if w.link.pass(ctx) != nil {
				return
			}
			select {
			case out <- response:
			case <-ctx.Done():
				return
			case <-w.link.broken:
				return
			}
		}
	}()
	return out
}

// RequestProgress implements clientv3.Watcher. What is asked over a dead network
// is lost.
func (w linkedWatcher) RequestProgress(ctx context.Context) error {
	switch err := w.link.Err(); err {
	case nil:
		return w.Watcher.RequestProgress(ctx)
	case errUnreachable:
		return nil
	default:
		return err
	}
}

// pass waits while the link is cut, with the patience of a watch, which has no
// end.
func (l *Link) pass(ctx context.Context) error {
	for {
		l.mu.Lock()
		cut, broken := l.cut, l.isBroken()
		l.mu.Unlock()
		switch {
		case broken:
			return ErrBroken
		case cut == nil:
			return nil
		}
		select {
		case <-cut:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
