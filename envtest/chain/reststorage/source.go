package reststorage

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"snowglobe.test/internal/broadcast"
)

// source is the store as one watch cache sees it, until the cache stops. Upstream's
// Cacher.Stop first ends the goroutine that takes events from the cache's queue, and
// then waits for the one that adds to it. That one would wait for ever for room in a
// full queue. So the source ends before the cache does, while the queue is still read.
type source struct {
	storage.Interface

	mu     sync.Mutex
	ended  bool
	events int          // that the cache has asked for
	watch  *sourceWatch // the newest, nil before the first

	taken broadcast.News // whenever the cache has done with an event
}

// queued is how many events a watch cache surely queues: it has room for 100 entries, and
// an event takes two.
const queued = 20

// Watch implements storage.Interface.
func (s *source) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	w := &sourceWatch{Interface: inner, source: s, over: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = w
	return w, nil
}

// end lets the cache get nothing more from the store, and returns when all that it has got is
// in the queue. If the cache has got fewer events than the queue has room for, end neither
// waits nor stops the watch: the reflector would log that the watch was very short.
func (s *source) end() {
	s.mu.Lock()
	s.ended = true
	w, full := s.watch, s.events > queued
	s.mu.Unlock()
	if w == nil || !full {
		return
	}
	w.Interface.Stop() // wakes the reflector, if it waits for an event
	<-w.over
}

// sourceWatch is a watch of the cache's reflector. It asks for the channel before each
// event, once the queue has the last one; TestDestroyBehind fails when it does not.
type sourceWatch struct {
	watch.Interface
	source *source
	once   sync.Once
	over   chan struct{} // closed when the reflector takes nothing more
}

// ResultChan implements watch.Interface.
func (w *sourceWatch) ResultChan() <-chan watch.Event {
	w.source.taken.Tell()
	w.source.mu.Lock()
	defer w.source.mu.Unlock()
	w.source.events++
	if w.source.ended {
		w.end()
		return nil // the reflector waits until it is stopped
	}
	return w.Interface.ResultChan()
}

// Stop implements watch.Interface.
func (w *sourceWatch) Stop() {
	w.Interface.Stop()
	w.end()
}

func (w *sourceWatch) end() { w.once.Do(func() { close(w.over) }) }
