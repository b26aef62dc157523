package client

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// watchClient is the clientv3.Watcher of an in-process client.
type watchClient struct {
	c      *client
	unread int // responses of a watch
}

// Watch has nothing in between: the writer itself delivers to a synced watch.
func (w *watchClient) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse, w.unread)
	deliver := func(r clientv3.WatchResponse, done <-chan struct{}) bool { return keyspace.Offer(out, r, done) }
	w.WatchFunc(ctx, key, deliver, func() { close(out) }, opts...)
	return out
}

// WatchFunc is Watch, but calls deliver for each response, one at a time, and ended
// after the last. If done is nil the caller is a writer that holds the store's
// lock: deliver must not wait, but may return false to get the response again later.
// Otherwise it may wait for room until done is closed, and returns false then.
func (w *watchClient) WatchFunc(
	ctx context.Context, key string, deliver func(r clientv3.WatchResponse, done <-chan struct{}) bool, ended func(),
	opts ...clientv3.OpOption,
) {
	op := clientv3.OpWatch(key, opts...)
	r := keyspace.Watch{
		Key: op.KeyBytes(), RangeEnd: op.RangeBytes(), Start: op.Rev(),
		PrevKV: op.IsPrevKV(), NoPut: op.IsFilterPut(), NoDelete: op.IsFilterDelete(),
		Announce: op.IsCreatedNotify(), Progress: op.IsProgressNotify(),
		Context: ctx, Deliver: deliver, Ended: ended,
	}
	if ctx.Err() != nil {
		ended()
	} else if err := r.Check(); err != nil {
		deliver(failedWatch(err), ctx.Done())
		ended()
	} else if stream := w.stream(ctx); stream == nil || stream.Watch(r) == nil {
		ended()
	}
}

// stream returns the watches that would share a gRPC stream with a watch of ctx:
// those with the same outgoing metadata; nil if the client is closed.
func (w *watchClient) stream(ctx context.Context) *keyspace.Stream {
	key := ""
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		key = fmt.Sprint(map[string][]string(md))
	}
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	stream := w.c.streams[key]
	if stream == nil && w.c.streams != nil {
		stream = w.c.store.NewStream()
		w.c.streams[key] = stream
	}
	return stream
}

// RequestProgress tells the watches with the outgoing metadata of ctx the revision,
// if all have seen everything up to it. As in etcd, nothing happens otherwise.
func (w *watchClient) RequestProgress(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	stream := w.stream(ctx)
	if stream == nil || !stream.Progress(func(r clientv3.WatchResponse, watchers []*keyspace.Watcher) {
		for _, each := range watchers {
			each.Deliver(r, nil)
		}
	}) {
		return errors.New("no stream found for context")
	}
	return nil
}

// Close ends the client's watches.
func (w *watchClient) Close() error {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.unhook()
	for _, stream := range w.c.streams {
		stream.Close()
	}
	w.c.streams = nil
	return nil
}
