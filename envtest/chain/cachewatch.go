package chain

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/intercept"
)

// cacheWatch is the watch of a cache. There is one hop for each cache, for rules
// may come while it runs.
type cacheWatch struct {
	edge  *cacheEdge
	inner watch.Interface
	stop  context.CancelFunc
	out   chan watch.Event
	// listing is that what comes next is the list by which the cache becomes
	// ready, up to the bookmark at its end; it is as old as the list's objects.
	listing bool
	verb    string // of what is being asked about
}

// ResultChan implements watch.Interface.
func (w *cacheWatch) ResultChan() <-chan watch.Event { return w.out }

// Stop implements watch.Interface.
func (w *cacheWatch) Stop() {
	w.stop()
	w.inner.Stop()
}

// concerns reports whether a rule may be about an event. The objects of the list
// by which the cache becomes ready are asked about once, at its end.
func (w *cacheWatch) concerns(event watch.Event) bool {
	w.verb = "event"
	switch event.Type {
	case watch.Error:
		return false
	case watch.Bookmark:
		w.verb = "progress"
		if end, err := storage.HasInitialEventsEndBookmarkAnnotation(event.Object); err == nil && end {
			w.verb, w.listing = "ready", false
		}
	}
	return !w.listing && w.edge.edge.Active() && w.edge.edge.Concerns(w.operation(event))
}

// ask returns what the cache takes instead of an event, and whether the watch
// goes on.
func (w *cacheWatch) ask(ctx context.Context, event watch.Event, arrived time.Time) ([]watch.Event, bool) {
	d, err := w.edge.edge.At(ctx, func() fault.Operation {
		op := w.operation(event)
		op.Arrived = arrived
		return op
	})
	return intercept.Instead(event, d, err, func(again watch.Event) watch.Event {
		again.Object = again.Object.DeepCopyObject()
		return again
	})
}

// operation describes what the cache is about to take. What has no revision
// looks as old as can be.
func (w *cacheWatch) operation(event watch.Event) fault.Operation {
	op := fault.Operation{Point: w.edge.point, Verb: w.verb}
	if object, err := meta.Accessor(event.Object); err == nil && event.Type != watch.Bookmark {
		op.Namespace, op.Name = object.GetNamespace(), object.GetName()
	}
	if revision, err := (storage.APIObjectVersioner{}).ObjectResourceVersion(event.Object); err == nil {
		op.Revision = int64(revision)
	}
	return op
}
