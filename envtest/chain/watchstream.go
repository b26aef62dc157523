package chain

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// streamKey is a field of a watch's metadata that etcd does not know.
const streamKey = "snowglobe-resource"

// watchStream gives the watches of a resource a stream of their own on the
// shared client, as they have with upstream's client for each resource. etcd
// tells how far a stream is only if no watch of it has just begun, so that on a
// common stream one resource would keep the caches of all others waiting, on a
// store to which nobody writes for ever.
type watchStream struct {
	clientv3.Watcher
	resource string
}

// ownStream returns a context of the stream of a resource: etcd's client tells
// streams apart by the metadata of their contexts.
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
