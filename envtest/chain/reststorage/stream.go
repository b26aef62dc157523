package reststorage

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// streamKey is a field in the metadata of a watch that means nothing to etcd.
const streamKey = "snowglobe-resource"

// watchStream gives the watches of a resource a gRPC stream of their own on the
// shared client, as upstream's client for each resource does. etcd sends no
// progress notification on a stream while a watch on it is starting, so on a common
// stream one resource would keep the caches of all others waiting, and for ever if
// nobody writes to the store.
type watchStream struct {
	clientv3.Watcher
	resource string
}

// ownStream returns a context for the stream of a resource: etcd's client opens one
// stream for each distinct metadata.
func ownStream(ctx context.Context, resource string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, streamKey, resource)
}

// Watch implements clientv3.Watcher.
func (w *watchStream) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return w.Watcher.Watch(ownStream(ctx, w.resource), key, opts...)
}

// RequestProgress implements clientv3.Watcher.
func (w *watchStream) RequestProgress(ctx context.Context) error {
	return w.Watcher.RequestProgress(ownStream(ctx, w.resource))
}
