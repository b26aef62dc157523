package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// errEmptyRange refuses a watch of no key, in etcd's words.
var errEmptyRange = errors.New("mvcc: watcher range is empty")

// watchClient is the clientv3.Watcher of an in-process client.
type watchClient struct{ c *client }

// Watch follows the store with nothing in between: the writer itself delivers to
// a synced watch.
func (w *watchClient) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpWatch(key, opts...)
	if key = string(op.KeyBytes()); key == "" {
		key = "\x00" // the smallest key
	}
	sp := spanOf(key, string(op.RangeBytes()))
	out := make(chan clientv3.WatchResponse, w.c.s.cfg.WatchBuffer)
	switch {
	case ctx.Err() != nil:
		close(out)
	case op.Rev() < 0:
		out <- failedWatch(rpctypes.ErrCompacted)
		close(out)
	case sp.kind == halfOpen && sp.key >= sp.end:
		out <- failedWatch(errEmptyRange)
		close(out)
	case !w.c.watch(ctx, op, sp, out):
		close(out)
	}
	return out
}

// watch starts a watcher that delivers to out. It reports false if the client
// or the server is closed.
func (c *client) watch(ctx context.Context, op clientv3.Op, sp span, out chan clientv3.WatchResponse) bool {
	w := &watcher{
		span: sp, start: op.Rev(), prevKV: op.IsPrevKV(), noPut: op.IsFilterPut(), noDelete: op.IsFilterDelete(),
		announce: op.IsCreatedNotify(), progress: op.IsProgressNotify(), sink: chanSink(out),
	}
	w.hook = func() func() bool {
		return context.AfterFunc(ctx, func() { c.s.contextDone(w) })
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

// RequestProgress tells every watch whose context has the same outgoing
// metadata the current revision, if all of them have seen everything up to it;
// as in etcd, nothing happens otherwise.
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

// chanSink delivers to the channel of an in-process watch.
type chanSink chan clientv3.WatchResponse

func response(d delivery) clientv3.WatchResponse {
	return clientv3.WatchResponse{
		Header: d.header, Events: d.events, Created: d.created,
		CompactRevision: d.compacted, Canceled: d.compacted != 0,
	}
}

func (s chanSink) offer(_ *watcher, d delivery) bool {
	select {
	case s <- response(d):
		return true
	default:
		return false
	}
}

func (s chanSink) push(w *watcher, d delivery) bool {
	select {
	case s <- response(d):
		return true
	case <-w.done:
		return false
	}
}

func (s chanSink) ended(*watcher) { close(s) }
