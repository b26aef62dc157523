package intercept

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/envtest/fault"
)

// follower is one watch, from the store to its receiver: a stage where the network
// and the rules of the store make its events wait, for a watch cache one more, and
// the channel. While nothing has to wait the store delivers right to the channel.
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
	// WatchFunc is Watch that calls deliver for each response, and ended after the
	// last one. A call of deliver whose done is nil must not wait, and may refuse the
	// response by returning false: it comes again later. Otherwise it may wait for
	// room until done is closed.
	WatchFunc(ctx context.Context, key string, deliver func(r clientv3.WatchResponse, done <-chan struct{}) bool, ended func(), opts ...clientv3.OpOption)
}

// follow has the store deliver to the first stage. A store that delivers to a channel
// needs a goroutine.
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

// storeOperation describes that the store tells of an event, or of its progress if
// there is none.
func (f *follower) storeOperation(_ *clientv3.WatchResponse, event *clientv3.Event) fault.Operation {
	if event == nil {
		return f.progress("notify")
	}
	op := f.operation(f.ctx, "store/watch-event", string(event.Kv.Key))
	op.Verb, op.Revision = "put", event.Kv.ModRevision
	if event.Type == clientv3.EventTypeDelete {
		op.Verb = "delete"
	}
	return op
}

// cacheOperation describes that a watch cache takes an event, or learns how far the
// store is if there is none.
func (f *follower) cacheOperation(r *clientv3.WatchResponse, event *clientv3.Event) fault.Operation {
	op := fault.Operation{Point: "cache/" + f.Resource, Verb: "progress", Revision: r.Header.Revision}
	if event != nil {
		op.Verb, op.Revision = "event", event.Kv.ModRevision
		op.Namespace, op.Name = f.object(string(event.Kv.Key))
	}
	return op
}
