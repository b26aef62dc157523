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
	// deliveryPatience is how long watchers may take nothing before they are given up. An
	// event on its way from a watcher's input to its full result queue is in neither, so that
	// its end does not show as progress.
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

// undelivered counts the events that a watch cache has and the readers of its watchers have
// not: left is all of them, queued those in queues. left is one more while the cache
// dispatches an event. That one does not count as progress: it may be one of the bookmarks
// that are sent every second whether watchers read or not. It reads private fields of
// upstream's Cacher (storage/cacher), which has no method for this; TestUndelivered fails when
// they have changed.
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

// Room is how many events every watcher with an empty queue can take at once: the capacity of
// the smallest such queue. watched is false if there is no such watcher. The cache ends the
// watch of a watcher that gets more events than that and does not take them in time.
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

// eventsOf counts the events that a watcher has yet to hand to its result queue, and those
// that its reader has yet to take from there.
func eventsOf(watcher reflect.Value) int {
	return watcher.FieldByName("input").Len() + watcher.FieldByName("result").Len()
}
