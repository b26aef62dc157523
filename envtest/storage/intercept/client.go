package intercept

import (
	"context"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// Identity is what rules tell one client's operations by, besides their kind.
type Identity struct {
	// Resource is what the client is for, such as "deployments.apps"; empty for none.
	Resource string
	// Prefix is where the keys of the resource begin, such as
	// "/registry/deployments/"; what follows in a key is NAMESPACE/NAME or NAME.
	Prefix string
	// Caller names whom a call is made for, empty if that is not known. It may be nil.
	Caller func(context.Context) string
}

// Client returns a client whose operations meet the rules, by that identity. Its
// watches have an etcd stream of their own (see WithStream). It shares all else with
// the other clients of the connection; closing it closes nothing.
func (c *Connection) Client(id Identity) *kubernetes.Client {
	return c.decorate(&decorator{conn: c, injector: c.injector, Identity: id, ownStream: true})
}

// Direct returns a client that only partitions reach. Closing it closes nothing.
func (c *Connection) Direct() *kubernetes.Client { return c.decorate(&decorator{conn: c}) }

func (c *Connection) decorate(d *decorator) *kubernetes.Client {
	inner := c.inner.Load()
	outer := clientv3.NewCtxClient(inner.Ctx())
	outer.Cluster, outer.Maintenance, outer.Auth = inner.Cluster, inner.Maintenance, inner.Auth
	outer.KV = &kv{inner.KV, d}
	outer.Lease = &lease{inner.Lease, d}
	outer.Watcher = &watcher{inner.Watcher, d}
	return &kubernetes.Client{Client: outer, Kubernetes: &kubernetesClient{inner.Kubernetes, d}}
}

// decorator is what the parts of one client have in common.
type decorator struct {
	Identity
	conn      *Connection
	injector  *edge.Injector // nil: no rule reaches it
	ownStream bool
	promises  promises
}

// operation describes what is about to happen to a key.
func (d *decorator) operation(ctx context.Context, s subject) fault.Operation {
	op := fault.Operation{Point: s.point, Resource: d.Resource, Key: s.key}
	if d.Resource != "" {
		op.Namespace, op.Name = d.object(s.key)
	}
	if d.Caller != nil {
		op.Caller = d.Caller(ctx)
	}
	return op
}

// object tells the namespace and the name of the object from its key. A key that
// ends in a slash is that of a namespace, as in a list.
func (d *decorator) object(key string) (namespace, name string) {
	object, ok := strings.CutPrefix(key, d.Prefix)
	if !ok {
		return "", ""
	}
	namespace, name, namespaced := strings.Cut(object, "/")
	if !namespaced {
		return "", namespace
	}
	return namespace, name
}

// call makes a call: rules first, then the network.
func call[T any](ctx context.Context, d *decorator, s subject, do func(context.Context) (T, error)) (T, error) {
	describe := func() fault.Operation { return d.operation(ctx, s) }
	return edge.Call(ctx, d.injector, describe, func(ctx context.Context) (T, error) {
		return send(ctx, d.conn, func() (T, error) { return do(ctx) })
	})
}

// kubernetesClient is how nearly every request reaches the store.
type kubernetesClient struct {
	inner kubernetes.Interface
	*decorator
}

// Get implements kubernetes.Interface.
func (k *kubernetesClient) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	return call(ctx, k.decorator, subject{fault.StoreRange, key}, func(ctx context.Context) (kubernetes.GetResponse, error) {
		return k.inner.Get(ctx, key, opts)
	})
}

// List implements kubernetes.Interface. Every page is an operation.
func (k *kubernetesClient) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	return call(ctx, k.decorator, subject{fault.StoreList, prefix}, func(ctx context.Context) (kubernetes.ListResponse, error) {
		return k.inner.List(ctx, prefix, opts)
	})
}

// Count implements kubernetes.Interface.
func (k *kubernetesClient) Count(ctx context.Context, prefix string, opts kubernetes.CountOptions) (int64, error) {
	return call(ctx, k.decorator, subject{fault.StoreCount, prefix}, func(ctx context.Context) (int64, error) {
		return k.inner.Count(ctx, prefix, opts)
	})
}

// OptimisticPut implements kubernetes.Interface.
func (k *kubernetesClient) OptimisticPut(ctx context.Context, key string, value []byte, expected int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	var err error
	if opts.LeaseID, err = k.keep(ctx, opts.LeaseID); err != nil {
		return kubernetes.PutResponse{}, err
	}
	return call(ctx, k.decorator, subject{fault.StorePut, key}, func(ctx context.Context) (kubernetes.PutResponse, error) {
		put, err := k.inner.OptimisticPut(ctx, key, value, expected, opts)
		if err == nil && put.Succeeded && k.conn.writes != nil {
			k.conn.writes.Written(ctx, key, expected, put.Revision)
		}
		return put, err
	})
}

// OptimisticDelete implements kubernetes.Interface.
func (k *kubernetesClient) OptimisticDelete(ctx context.Context, key string, expected int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	return call(ctx, k.decorator, subject{fault.StoreDelete, key}, func(ctx context.Context) (kubernetes.DeleteResponse, error) {
		deleted, err := k.inner.OptimisticDelete(ctx, key, expected, opts)
		if err == nil && deleted.Succeeded && k.conn.writes != nil {
			k.conn.writes.Deleted(key, expected)
		}
		return deleted, err
	})
}

// lease is the client's leases. API servers only call Grant: rules know nothing else.
type lease struct {
	clientv3.Lease
	*decorator
}

// Grant implements clientv3.Lease.
func (l *lease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	if l.conn.promiseLeases {
		return l.promises.make(ttl), nil
	}
	return l.grant(ctx, ttl)
}

// Revoke implements clientv3.Lease.
func (l *lease) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return send(ctx, l.conn, func() (*clientv3.LeaseRevokeResponse, error) { return l.Lease.Revoke(ctx, id) })
}

// TimeToLive implements clientv3.Lease.
func (l *lease) TimeToLive(ctx context.Context, id clientv3.LeaseID, opts ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	return send(ctx, l.conn, func() (*clientv3.LeaseTimeToLiveResponse, error) { return l.Lease.TimeToLive(ctx, id, opts...) })
}

// KeepAliveOnce implements clientv3.Lease.
func (l *lease) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return send(ctx, l.conn, func() (*clientv3.LeaseKeepAliveResponse, error) { return l.Lease.KeepAliveOnce(ctx, id) })
}

// kv is all other calls about keys.
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
	stream, err := call(streaming, k.decorator, subject{fault.StoreList, key}, get)
	if err != nil {
		end()
		return nil, err
	}
	context.AfterFunc(ctx, end)
	return stream, nil
}

// Put implements clientv3.KV.
func (k *kv) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return call(ctx, k.decorator, subject{fault.StorePut, key}, func(ctx context.Context) (*clientv3.PutResponse, error) {
		return k.KV.Put(ctx, key, value, opts...)
	})
}

// Delete implements clientv3.KV.
func (k *kv) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return call(ctx, k.decorator, subject{fault.StoreDelete, key}, func(ctx context.Context) (*clientv3.DeleteResponse, error) {
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
	return call(ctx, k.decorator, subject{point: fault.StoreCompact}, func(ctx context.Context) (*clientv3.CompactResponse, error) {
		return k.KV.Compact(ctx, revision, opts...)
	})
}

// Txn implements clientv3.KV.
func (k *kv) Txn(ctx context.Context) clientv3.Txn { return &txn{kv: k, ctx: ctx} }

// txn is a transaction, which meets the rules at Commit.
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

// Commit implements clientv3.Txn. Committing twice makes two transactions.
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
