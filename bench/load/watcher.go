package load

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"snowglobe.test/bench/wire"
)

// watcher is one client that watches the objects of a load. Like an informer, it
// continues from its last event when the server ends the watch.
type watcher struct {
	number   int
	load     *Load
	pace     pace
	stream   Stream // nil before it is opened
	from     string // resourceVersion that the stream began after
	tally    tally
	restarts int
	expired  bool // it could not go on from its last event, and would have to list
	sampled  []SampledEvent
	newest   time.Duration // when the newest event arrived, on the load's clock
}

// maxIdleRestarts is how often in a row the server may end a watch without an event.
const maxIdleRestarts = 10

// open opens the watch, or opens it again where it has ended.
func (w *watcher) open(ctx context.Context) (err error) {
	from := cmp.Or(w.from, w.load.from)
	if w.stream != nil {
		var newest string
		newest, err = w.stream.Newest()
		from = cmp.Or(newest, from)
		w.stream.Stop()
	}
	if err == nil {
		w.stream, err = w.load.on.Watch(ctx, w.number, w.tally.group, from)
	}
	if err != nil {
		return fmt.Errorf("watcher %d: open the watch: %w", w.number+1, err)
	}
	w.from = from
	return nil
}

func (w *watcher) close() {
	if w.stream != nil {
		w.stream.Stop()
	}
}

// follow receives events until the last one of the load, or until a laggard would have to list.
func (w *watcher) follow(ctx context.Context) error {
	if w.pace == paceStalled {
		<-w.load.caughtUp
	}
	err := w.receive(ctx)
	if w.expired = w.pace != paceFull && apierrors.IsResourceExpired(err); w.expired {
		return nil
	}
	return err
}

func (w *watcher) receive(ctx context.Context) error {
	for idle := 0; idle < maxIdleRestarts; {
		from := w.from
		done, err := w.stream.Receive(ctx, w.count)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("watcher %d: %w", w.number+1, err)
		}
		w.restarts++
		if err := w.open(ctx); err != nil {
			return err
		}
		if idle++; w.from != from { // also by events of the warm-up, which are not counted
			idle = 0
		}
	}
	return fmt.Errorf("watcher %d: the server ended the watch %d times in a row without an event", w.number+1,
		maxIdleRestarts)
}

// count records an event, and reports whether all of the load that concern the watcher are there.
func (w *watcher) count(at wire.Stamp, arrived time.Duration) (all bool, err error) {
	if w.pace == paceSlow {
		w.pause()
	}
	if at.Number == w.load.warmUpNumber() {
		return false, nil
	}
	fresh, err := w.tally.see(at.Number)
	if fresh && w.pace == paceFull {
		w.load.delivery.Record(w.number, arrived-at.Due)
		w.newest = arrived
		if object, _ := w.tally.of(at.Number); w.number == 0 && object == 0 {
			w.sampled = append(w.sampled, SampledEvent{w.load.begun.Add(at.Due), w.load.begun.Add(arrived)})
		}
	}
	return w.tally.ended(), err
}
