package keyspace

import (
	"cmp"
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// kubernetesClient implements the interface that Kubernetes uses directly on the
// store. Nearly every request of an API server takes this path.
type kubernetesClient struct {
	s *Store
	// mayAsk says why a request with a context cannot be made.
	mayAsk func(context.Context) error
}

// Kubernetes returns the interface to the store, for whoever mayAsk lets make requests.
func (s *Store) Kubernetes(mayAsk func(context.Context) error) kubernetes.Interface {
	return &kubernetesClient{s, mayAsk}
}

func (k *kubernetesClient) Get(
	ctx context.Context, key string, opts kubernetes.GetOptions,
) (resp kubernetes.GetResponse, err error) {
	if err := k.usable(ctx, key); err != nil {
		return resp, err
	}
	f, err := k.s.scan(&scan{span: span{key: key}, rev: opts.Revision})
	if err != nil {
		return resp, rpctypes.Error(err)
	}
	resp.Revision = f.rev
	if len(f.kvs) > 0 {
		resp.KV = f.kvs[0]
	}
	return resp, nil
}

func (k *kubernetesClient) List(
	ctx context.Context, prefix string, opts kubernetes.ListOptions,
) (resp kubernetes.ListResponse, err error) {
	start := cmp.Or(opts.Continue, prefix)
	if err := k.usable(ctx, start); err != nil {
		return resp, err
	}
	f, err := k.s.scan(&scan{
		span: spanOf(start, clientv3.GetPrefixRangeEnd(prefix)), rev: opts.Revision, limit: opts.Limit,
	})
	if err != nil {
		return resp, rpctypes.Error(err)
	}
	return kubernetes.ListResponse{Kvs: f.kvs, Count: f.count, Revision: f.rev}, nil
}

func (k *kubernetesClient) Count(ctx context.Context, prefix string, _ kubernetes.CountOptions) (int64, error) {
	sp := spanOf(prefix, clientv3.GetPrefixRangeEnd(prefix))
	if prefix == "" {
		sp = span{key: "\x00", kind: fromKey}
	}
	if err := k.usable(ctx, sp.key); err != nil {
		return 0, err
	}
	f, err := k.s.scan(&scan{span: sp, countOnly: true})
	return f.count, rpctypes.Error(err)
}

func (k *kubernetesClient) OptimisticPut(
	ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions,
) (resp kubernetes.PutResponse, err error) {
	if err := k.usable(ctx, key); err != nil {
		return resp, err
	}
	s := k.s
	if err := s.checkTxnPutSize(key, value); err != nil {
		return resp, rpctypes.Error(err)
	}
	t, err := s.begin(keyCost + len(key) + len(value))
	if err != nil {
		return resp, rpctypes.Error(err)
	}
	defer t.end()
	rec := s.keys.record(key)
	if current := modRevision(rec); current != expectedRevision {
		resp.Revision = s.keys.rev
		if opts.GetOnFailure && current != 0 {
			resp.KV = &rec.head.kv
		}
		return resp, nil
	}
	lease := int64(opts.LeaseID)
	if lease != 0 && s.leases.lookup(lease) == nil {
		return resp, rpctypes.ErrLeaseNotFound
	}
	t.put(key, rec, nil, value, lease)
	resp.Succeeded, resp.Revision = true, t.rev()
	return resp, nil
}

func (k *kubernetesClient) OptimisticDelete(
	ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions,
) (resp kubernetes.DeleteResponse, err error) {
	if err := k.usable(ctx, key); err != nil {
		return resp, err
	}
	s := k.s
	t, err := s.begin(0)
	if err != nil {
		return resp, rpctypes.Error(err)
	}
	defer t.end()
	rec := s.keys.record(key)
	current := modRevision(rec)
	switch {
	case current != expectedRevision:
		if opts.GetOnFailure && current != 0 {
			resp.KV = &rec.head.kv
		}
	case current == 0:
		resp.Succeeded = true // deleting a missing key changes nothing
	default:
		t.delete(key, rec)
		resp.Succeeded = true
	}
	resp.Revision = t.rev()
	return resp, nil
}

// usable says why a request about key cannot be made.
func (k *kubernetesClient) usable(ctx context.Context, key string) error {
	if key == "" {
		return rpctypes.ErrEmptyKey
	}
	return clientv3.ContextError(ctx, k.mayAsk(ctx))
}

// modRevision returns the revision of rec's current version, 0 if there is none.
func modRevision(rec *record) int64 {
	if rec == nil || rec.head.tombstone() {
		return 0
	}
	return rec.head.kv.ModRevision
}

// checkTxnPutSize refuses a put too large for the transaction that it stands for.
func (s *Store) checkTxnPutSize(key string, value []byte) error {
	if 2*len(key)+len(value) < s.cfg.MaxRequestBytes/4 {
		return nil
	}
	put := &pb.PutRequest{Key: []byte(key), Value: value}
	return s.checkSize(&pb.TxnRequest{
		Compare: []*pb.Compare{{Target: pb.Compare_MOD, Key: []byte(key)}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: put}}},
	}, s.cfg.MaxRequestBytes)
}
