package bench

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher is one client that watches the objects of a load. Like an informer, it
// continues from its last event when the server ends the watch.
type watcher struct {
	number   int
	load     *load
	client   connection
	stream   watch.Interface // nil before it is opened
	tally    tally
	restarts int
	newest   time.Duration // when the newest event arrived, on the load's clock
}

// maxIdleRestarts is how often in a row the server may end a watch without an event.
const maxIdleRestarts = 10

func (w *watcher) open(ctx context.Context) error {
	if w.client.Interface == nil {
		client, err := connect(w.load.config, contentTypes[w.load.opts.Encoding])
		if err != nil {
			return err
		}
		w.client = client
	}
	from := cmp.Or(w.tally.last, w.load.from)
	stream, err := w.client.CoreV1().ConfigMaps(w.load.namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: from, AllowWatchBookmarks: true,
	})
	if err != nil {
		return fmt.Errorf("watcher %d: open the watch: %w", w.number+1, err)
	}
	w.stream = stream
	return nil
}

func (w *watcher) close() {
	if w.stream != nil {
		w.stream.Stop()
	}
	w.client.close()
}

// follow receives events until the last one of the load.
func (w *watcher) follow(ctx context.Context) error {
	for idle := 0; idle < maxIdleRestarts; {
		before := w.tally.seen
		done, err := w.receive(ctx)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("watcher %d: %w", w.number+1, err)
		}
		idle++
		if w.tally.seen > before {
			idle = 0
		}
		w.restarts++
		w.stream.Stop()
		if err := w.open(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("watcher %d: the server ended the watch %d times in a row without an event", w.number+1, maxIdleRestarts)
}

// receive follows one stream to its end, or until the last event of the load.
func (w *watcher) receive(ctx context.Context) (done bool, err error) {
	for {
		select {
		case event, ok := <-w.stream.ResultChan():
			if !ok {
				return false, nil
			}
			now := time.Since(w.load.begun)
			if done, err := w.observe(event, now); done || err != nil {
				return done, err
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// observe handles one event and reports whether it was the last one of the load.
func (w *watcher) observe(event watch.Event, now time.Duration) (done bool, err error) {
	if event.Type == watch.Error {
		return false, apierrors.FromObject(event.Object)
	}
	object, ok := event.Object.(*corev1.ConfigMap)
	if !ok {
		return false, fmt.Errorf("event %s has a %T", event.Type, event.Object)
	}
	if event.Type != watch.Bookmark {
		if done, err = w.count(object, now); err != nil {
			return false, fmt.Errorf("ConfigMap %s: %w", object.Name, err)
		}
	}
	return done, w.order(object.ResourceVersion)
}

// count records an event of the load; those of a cluster's controllers have no stamp.
func (w *watcher) count(object *corev1.ConfigMap, now time.Duration) (last bool, err error) {
	stamp := object.Annotations[numberAnnotation]
	if stamp == "" {
		return false, nil
	}
	number, err := strconv.Atoi(stamp)
	if err != nil || number < 0 || number >= w.load.events {
		return false, fmt.Errorf("the stamp %q is not of this load", stamp)
	}
	sent, err := strconv.ParseInt(object.Annotations[sentAnnotation], 10, 64)
	if err != nil {
		return false, fmt.Errorf("when it was sent: %w", err)
	}
	if w.tally.see(number) {
		w.load.delivery.record(w.number, now-time.Duration(sent))
		w.newest = now
	}
	return number == w.load.events-1, nil
}

// order checks that a resourceVersion is newer than all before it.
func (w *watcher) order(resourceVersion string) error {
	if w.tally.last != "" {
		order, err := resourceversion.CompareResourceVersion(w.tally.last, resourceVersion)
		if err != nil {
			return err
		}
		if order > 0 {
			w.tally.reordered++
			return nil
		}
	}
	w.tally.last = resourceVersion
	return nil
}

// tally is which numbered events a watcher has seen. Only its goroutine uses it.
type tally struct {
	events int
	bits   []uint64 // one for each event
	seen   int      // different events
	last   string   // resourceVersion of the newest event

	duplicates int
	reordered  int
}

func newTally(events int) tally {
	return tally{events: events, bits: make([]uint64, (events+63)/64)}
}

// see records an event and reports whether it is new.
func (t *tally) see(event int) bool {
	word, bit := &t.bits[event/64], uint64(1)<<(event%64)
	if *word&bit != 0 {
		t.duplicates++
		return false
	}
	*word |= bit
	t.seen++
	return true
}

func (t *tally) lost() int { return t.events - t.seen }

// firstLost returns the number of the first event not seen, or -1.
func (t *tally) firstLost() int {
	for event := range t.events {
		if t.bits[event/64]&(1<<(event%64)) == 0 {
			return event
		}
	}
	return -1
}

// defects describes what went wrong; it is empty if nothing did.
func (t *tally) defects() string {
	switch {
	case t.lost() > 0:
		return fmt.Sprintf("missed %d of %d events, the first of them number %d", t.lost(), t.events, t.firstLost()+1)
	case t.duplicates > 0:
		return fmt.Sprintf("saw %d events again", t.duplicates)
	case t.reordered > 0:
		return fmt.Sprintf("saw %d events after a newer one", t.reordered)
	}
	return ""
}
