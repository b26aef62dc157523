package intercept

import (
	"context"

	"go.etcd.io/etcd/client/v3/kubernetes"
)

// kubernetesClient is how nearly every request reaches the store.
type kubernetesClient struct {
	inner kubernetes.Interface
	*decorator
}

// Get implements kubernetes.Interface.
func (k *kubernetesClient) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	return call(ctx, k.decorator, "store/range", key, func(ctx context.Context) (kubernetes.GetResponse, error) {
		return k.inner.Get(ctx, key, opts)
	})
}

// List implements kubernetes.Interface. Every page is an operation.
func (k *kubernetesClient) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	return call(ctx, k.decorator, "store/list", prefix, func(ctx context.Context) (kubernetes.ListResponse, error) {
		return k.inner.List(ctx, prefix, opts)
	})
}

// Count implements kubernetes.Interface.
func (k *kubernetesClient) Count(ctx context.Context, prefix string, opts kubernetes.CountOptions) (int64, error) {
	return call(ctx, k.decorator, "store/count", prefix, func(ctx context.Context) (int64, error) {
		return k.inner.Count(ctx, prefix, opts)
	})
}

// OptimisticPut implements kubernetes.Interface.
func (k *kubernetesClient) OptimisticPut(ctx context.Context, key string, value []byte, expected int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	return call(ctx, k.decorator, "store/put", key, func(ctx context.Context) (kubernetes.PutResponse, error) {
		put, err := k.inner.OptimisticPut(ctx, key, value, expected, opts)
		if err == nil && put.Succeeded && k.conn.writes != nil {
			k.conn.writes.Written(ctx, key, expected, put.Revision)
		}
		return put, err
	})
}

// OptimisticDelete implements kubernetes.Interface.
func (k *kubernetesClient) OptimisticDelete(ctx context.Context, key string, expected int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	return call(ctx, k.decorator, "store/delete", key, func(ctx context.Context) (kubernetes.DeleteResponse, error) {
		deleted, err := k.inner.OptimisticDelete(ctx, key, expected, opts)
		if err == nil && deleted.Succeeded && k.conn.writes != nil {
			k.conn.writes.Deleted(key, expected)
		}
		return deleted, err
	})
}
