package intercept

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// watchBuffer is how many responses a receiver can be behind before a store that
// delivers by itself stops delivering to it.
const watchBuffer = 128

type cacheKey struct{}

// ForCache returns a context for the watches of a watch cache: what they
// deliver meets the rules of cache/RESOURCE as well, after those of the store.
func ForCache(ctx context.Context) context.Context {
	return context.WithValue(ctx, cacheKey{}, true)
}

// streamKey is a field of a watch's metadata that etcd does not know.
const streamKey = "snowglobe-resource"

// WithStream returns a context for the watch stream of a resource; etcd's client
// tells streams apart by their contexts' metadata. Each resource has one on the
// shared client, as with upstream's client for each resource: etcd reports a stream's
// progress only if none of its watches has just begun, so that one resource would
// keep the caches of all others waiting, forever on a store to which no client writes.
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
	describe := func() fault.Operation { return w.operation(ctx, subject{fault.StoreWatchCreate, key}) }
	return edge.Execute(ctx, w.injector, describe, edge.Ways[clientv3.WatchChan]{
		Proceed: func() clientv3.WatchChan { return w.begin(ctx, key, opts) },
		Fail:    func(err error) clientv3.WatchChan { return refused(ctx, err) },
		// A watch of which the store has never heard.
		Drop: func() clientv3.WatchChan {
			out := make(chan clientv3.WatchResponse)
			go func() {
				defer close(out)
				_ = w.injector.Lost(ctx)
			}()
			return out
		},
		Cancel: ended,
		Abort:  func(error) clientv3.WatchChan { return ended() },
	})
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

// RequestProgress implements clientv3.Watcher. No caller waits for an answer to
// the request itself, so a lost one looks like any other.
func (w *watcher) RequestProgress(ctx context.Context) error {
	describe := func() fault.Operation { return w.progress("request") }
	return edge.Execute(ctx, w.injector, describe, edge.Ways[error]{
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

// progress describes a request for a watch's progress, or the answer.
func (d *decorator) progress(verb string) fault.Operation {
	return fault.Operation{Point: fault.StoreProgress, Verb: verb, Resource: d.Resource}
}

// refused returns a watch as etcd's client makes it when the store turns it down.
func refused(ctx context.Context, err error) clientv3.WatchChan {
	return clientv3.NewWatchFromWatchClient(refusal{err: err}, clientv3.NewCtxClient(ctx)).Watch(ctx, "refused")
}

// refusal is a store that ends every stream of watches with an error.
type refusal struct {
	pb.Watch_WatchClient
	err error
}

var _ pb.WatchClient = refusal{}

// Watch implements pb.WatchClient.
func (r refusal) Watch(context.Context, ...grpc.CallOption) (pb.Watch_WatchClient, error) {
	return r, nil
}

// Send implements pb.Watch_WatchClient.
func (refusal) Send(*pb.WatchRequest) error { return nil }

// Recv implements pb.Watch_WatchClient.
func (r refusal) Recv() (*pb.WatchResponse, error) { return nil, fault.GRPC(r.err) }

// CloseSend implements pb.Watch_WatchClient.
func (refusal) CloseSend() error { return nil }

// follower is one watch: a stage for the network and the store's rules, one more for
// a watch cache, and the channel. While nothing waits the store delivers right to it.
type follower struct {
	*watcher
	ctx    context.Context // ends with the watch
	cancel context.CancelFunc
	source context.Context // ends when no more of the store is wanted
	stop   context.CancelFunc
	first  *stage
}

// funcWatcher is a store that delivers by calling a function.
type funcWatcher interface {
	// WatchFunc is Watch, but calls deliver for each response, and ended after the
	// last. If done is nil, deliver must not wait, but may return false to get the
	// response again later. Otherwise it may wait for room until done is closed.
	WatchFunc(ctx context.Context, key string, deliver func(r clientv3.WatchResponse, done <-chan struct{}) bool, ended func(), opts ...clientv3.OpOption)
}

// follow has the store deliver to the first stage; a channel is read by a goroutine.
func (f *follower) follow(key string, opts []clientv3.OpOption) {
	if store, ok := f.Watcher.(funcWatcher); ok {
		store.WatchFunc(f.source, key, f.first.deliver, f.first.end, opts...)
		return
	}
	in := f.Watcher.Watch(f.source, key, opts...)
	if !f.conn.start(func() { f.pump(in) }) {
		f.first.end()
	}
}

// pump delivers what comes on a channel.
func (f *follower) pump(in clientv3.WatchChan) {
	defer f.first.end()
	defer context.AfterFunc(f.conn.life, f.cancel)()
	for {
		select {
		case r, ok := <-in:
			if !ok || !f.first.deliver(r, f.source.Done()) {
				return
			}
		case <-f.source.Done():
			return
		}
	}
}

// storeOperation describes the store telling of an event; of progress if it is nil.
func (f *follower) storeOperation(_ *clientv3.WatchResponse, event *clientv3.Event) fault.Operation {
	if event == nil {
		return f.progress("notify")
	}
	op := f.operation(f.ctx, subject{fault.StoreWatchEvent, string(event.Kv.Key)})
	op.Verb, op.Revision = "put", event.Kv.ModRevision
	if event.Type == clientv3.EventTypeDelete {
		op.Verb = "delete"
	}
	return op
}

// cacheOperation describes a watch cache taking an event, or progress if it is nil.
func (f *follower) cacheOperation(r *clientv3.WatchResponse, event *clientv3.Event) fault.Operation {
	op := fault.Operation{Point: fault.CachePoint + f.Resource, Verb: "progress", Revision: r.Header.Revision}
	if event != nil {
		op.Verb, op.Revision = "event", event.Kv.ModRevision
		op.Namespace, op.Name = f.object(string(event.Kv.Key))
	}
	return op
}
