package intercept

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"snowglobe.test/envtest/fault"
)

// watchBuffer is how many responses a receiver can be behind before a store that
// delivers by itself stops delivering to it.
const watchBuffer = 128

type cacheKey struct{}

// ForCache returns a context that says of a watch that it is a watch cache's: what
// it delivers meets the rules of cache/RESOURCE as well, after those of the store.
func ForCache(ctx context.Context) context.Context {
	return context.WithValue(ctx, cacheKey{}, true)
}

// streamKey is a field of a watch's metadata that etcd does not know.
const streamKey = "snowglobe-resource"

// WithStream returns a context of the watch stream of a resource. etcd's client
// tells streams apart by the metadata of their contexts. The watches of a resource
// have a stream of their own on the shared client, as they have with upstream's
// client for each resource: etcd tells how far a stream is only if no watch of it
// has just begun, so that on a common stream one resource would keep the caches of
// all others waiting, on a store to which nobody writes for ever.
func WithStream(ctx context.Context, resource string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, streamKey, resource)
}

// watcher is the client's watches.
type watcher struct {
	clientv3.Watcher
	*decorator
}

// stream returns the context with which the inner client is asked.
func (w *watcher) stream(ctx context.Context) context.Context {
	if !w.ownStream {
		return ctx
	}
	return WithStream(ctx, w.Resource)
}

// Watch implements clientv3.Watcher.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	ended := func() clientv3.WatchChan {
		out := make(chan clientv3.WatchResponse)
		close(out)
		return out
	}
	describe := func() fault.Operation { return w.operation(ctx, "store/watch-create", key) }
	return fault.Execute(ctx, w.injector, describe, fault.Ways[clientv3.WatchChan]{
		Proceed: func() clientv3.WatchChan { return w.begin(ctx, key, opts) },
		Fail:    func(err error) clientv3.WatchChan { return refused(ctx, err) },
		Drop:    func() clientv3.WatchChan { return w.lost(ctx) },
		Cancel:  ended,
		Abort:   func(error) clientv3.WatchChan { return ended() },
	})
}

// lost is a watch of which the store has never heard.
func (w *watcher) lost(ctx context.Context) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		_ = w.injector.Lost(ctx)
	}()
	return out
}

// begin starts a watch, or has it started when the store is within reach.
func (w *watcher) begin(ctx context.Context, key string, opts []clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse, watchBuffer)
	f := &follower{watcher: w}
	f.ctx, f.cancel = context.WithCancel(w.stream(ctx))
	f.source, f.stop = context.WithCancel(f.ctx)
	var next receiver = outlet{out, f.cancel}
	if ctx.Value(cacheKey{}) != nil {
		next = &stage{follower: f, describe: f.cacheOperation, next: next}
	}
	f.first = &stage{follower: f, network: true, describe: f.storeOperation, next: next}
	if w.conn.Err() == nil {
		f.follow(key, opts)
		return out
	}
	if !w.conn.start(func() {
		if w.conn.await(f.ctx, nil) != nil {
			f.first.end()
			return
		}
		f.follow(key, opts)
	}) {
		f.first.end()
	}
	return out
}

// RequestProgress implements clientv3.Watcher. Nobody waits for an answer to the
// request itself, so that one that is lost looks like any other.
func (w *watcher) RequestProgress(ctx context.Context) error {
	describe := func() fault.Operation { return w.progress("request") }
	return fault.Execute(ctx, w.injector, describe, fault.Ways[error]{
		Proceed: func() error {
			switch err := w.conn.Err(); err {
			case nil:
				return w.Watcher.RequestProgress(w.stream(ctx))
			case errUnreachable:
				return nil
			default:
				return err
			}
		},
		Fail: func(err error) error { return err },
		Drop: func() error { return nil },
	})
}

// progress describes a question how far a watch is, or the answer.
func (d *decorator) progress(verb string) fault.Operation {
	return fault.Operation{Point: "store/progress", Verb: verb, Resource: d.Resource}
}
