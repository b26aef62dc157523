package reststorage

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"time"

	"k8s.io/apiserver/pkg/storage/cacher"
)

const (
	deliveryPause = time.Millisecond
	// deliveryPatience is how long watchers may take nothing before they are given up. One
	// event is not seen to be taken, the last that waits for room: it is between two queues.
	deliveryPatience = 4 * time.Second
)

// WaitDelivered waits until every watcher of the watch cache has taken what the cache has
// seen, or none takes any more, or the resource is destroyed.
func (r *Resource) WaitDelivered(ctx context.Context) error {
	var still time.Duration
	for left, queued := undelivered(r.cache); left > 0 && still < deliveryPatience && !r.Destroyed(); {
		select {
		case <-time.After(deliveryPause):
		case <-ctx.Done():
			return fmt.Errorf("watchers of %s have yet to take %d events: %w", r.name, left, context.Cause(ctx))
		}
		before := queued
		left, queued = undelivered(r.cache)
		still += deliveryPause
		if queued != before {
			still = 0
		}
	}
	return nil
}

// undelivered is how many events are between a watch cache and whoever reads the results of
// its watchers, and how many of them are in queues: the other is being dispatched, and may be
// one of the bookmarks of each second, which say nothing of a watcher. It reaches into
// upstream's Cacher (storage/cacher), which does not tell; TestUndelivered fails when that
// has changed.
func undelivered(c *cacher.Cacher) (left, queued int) {
	c.RLock()
	defer c.RUnlock()
	cache := reflect.ValueOf(c).Elem()
	queued = cache.FieldByName("incoming").Len()
	for watcher := range watchers(c) {
		queued += eventsOf(watcher)
	}
	if cache.FieldByName("dispatching").Bool() {
		return queued + 1, queued
	}
	return queued, queued
}

// Room is how many events each watcher of the watch cache can take at once, unless it has
// yet to take others; watched is false if there is none. The cache ends the watch of one that
// gets more and does not take them in time.
func (r *Resource) Room() (events int, watched bool) {
	r.cache.RLock()
	defer r.cache.RUnlock()
	for watcher := range watchers(r.cache) {
		if room := watcher.FieldByName("input").Cap(); eventsOf(watcher) == 0 && (!watched || room < events) {
			events, watched = room, true
		}
	}
	return events, watched
}

// watchers are the watchers of a cache, whose lock is held.
func watchers(c *cacher.Cacher) iter.Seq[reflect.Value] {
	return func(yield func(reflect.Value) bool) {
		for _, index := range []string{"allWatchers", "valueWatchers"} {
			all := reflect.ValueOf(c).Elem().FieldByName("watchers").FieldByName(index)
			for _, some := range all.Seq2() {
				for _, watcher := range some.Seq2() {
					if !yield(watcher.Elem()) {
						return
					}
				}
			}
		}
	}
}

// eventsOf is how many events a watcher has yet to hand on, and its reader to take.
func eventsOf(watcher reflect.Value) int {
	return watcher.FieldByName("input").Len() + watcher.FieldByName("result").Len()
}
