package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// watchClient is the clientv3.Watcher of an in-process client.
type watchClient struct{ c *client }

// Watch has nothing in between: the writer itself delivers to a synced watch.
func (w *watchClient) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse, w.c.s.cfg.WatchBuffer)
	deliver := func(r clientv3.WatchResponse, done <-chan struct{}) bool { return offer(out, r, done) }
	w.WatchFunc(ctx, key, deliver, func() { close(out) }, opts...)
	return out
}

// WatchFunc is Watch, but calls deliver for each response, one at a time, and ended
// after the last. If done is nil the caller is a writer that holds the server's
// lock: deliver must not wait, but may return false to get the response again later.
// Otherwise it may wait for room until done is closed, and returns false then.
func (w *watchClient) WatchFunc(ctx context.Context, key string, deliver func(r clientv3.WatchResponse, done <-chan struct{}) bool, ended func(), opts ...clientv3.OpOption) {
	op := clientv3.OpWatch(key, opts...)
	sp := watchedSpan(op.KeyBytes(), op.RangeBytes())
	if ctx.Err() != nil {
		ended()
	} else if err := sp.watchable(op.Rev()); err != nil {
		deliver(failedWatch(err), ctx.Done())
		ended()
	} else if !w.c.watch(ctx, op, sp, funcSink{deliver, ended}) {
		ended()
	}
}

// watch starts a watcher. It reports false if the client or the server is closed.
func (c *client) watch(ctx context.Context, op clientv3.Op, sp span, to sink) bool {
	w := &watcher{
		ctx: ctx, span: sp, start: op.Rev(), prevKV: op.IsPrevKV(), noPut: op.IsFilterPut(), noDelete: op.IsFilterDelete(),
		announce: op.IsCreatedNotify(), progress: op.IsProgressNotify(), sink: to,
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.closed || c.streams == nil {
		return false
	}
	c.s.add(w, c.stream(ctx))
	return true
}

// stream returns the watches that would share a gRPC stream with a watch of ctx:
// those with the same outgoing metadata. The server is locked.
func (c *client) stream(ctx context.Context) *watchSet {
	key := ""
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		key = fmt.Sprint(map[string][]string(md))
	}
	set := c.streams[key]
	if set == nil {
		set = &watchSet{}
		c.streams[key] = set
	}
	return set
}

// RequestProgress tells the watches with the outgoing metadata of ctx the revision,
// if all have seen everything up to it. As in etcd, nothing happens otherwise.
func (w *watchClient) RequestProgress(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Writers have to wait, or the revision could move between two watches.
	s := w.c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || w.c.streams == nil {
		return errors.New("no stream found for context")
	}
	set := w.c.stream(ctx)
	if s.allSynced(set) {
		for _, wa := range set.list {
			s.tellProgress(wa)
		}
	}
	return nil
}

// Close ends the client's watches.
func (w *watchClient) Close() error {
	s := w.c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = slices.DeleteFunc(s.clients, func(c *client) bool { return c == w.c })
	for _, set := range w.c.streams {
		for _, wa := range slices.Clone(set.list) {
			s.endWatcher(wa)
		}
	}
	w.c.streams = nil
	return nil
}

// funcSink delivers to the functions of an in-process watch.
type funcSink struct {
	fn  func(r clientv3.WatchResponse, done <-chan struct{}) bool
	end func()
}

func (s funcSink) deliver(d delivery, done <-chan struct{}) bool {
	return s.fn(clientv3.WatchResponse{
		Header: d.header, Events: d.events, Created: d.created,
		CompactRevision: d.compacted, Canceled: d.compacted != 0,
	}, done)
}

func (s funcSink) ended() { s.end() }
