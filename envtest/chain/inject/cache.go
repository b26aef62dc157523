package inject

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/storage/intercept"
)

// cacheSource is the storage.Interface between one watch cache and the store. Here rules act
// on the list that makes the cache ready and on the events of its watch, and on nothing that
// others read from the store.
type cacheSource struct {
	storage.Interface
	injector *edge.Injector
	point    string
	life     context.Context // ends with the cache
}

// CacheSource returns the store as a resource's watch cache sees it, until end.
func CacheSource(
	store storage.Interface, i *edge.Injector, resource schema.GroupResource,
) (source storage.Interface, end func()) {
	s := &cacheSource{Interface: store, injector: i, point: fault.CachePoint + resource.String()}
	s.life, end = context.WithCancel(context.Background())
	return s, end
}

// GetList implements storage.Interface. The last page makes the cache ready.
func (s *cacheSource) GetList(ctx context.Context, key string, opts storage.ListOptions, into runtime.Object) error {
	err := s.Interface.GetList(ctx, key, opts, into)
	if err != nil || !s.injector.Active() {
		return err
	}
	list, err := meta.ListAccessor(into)
	if err != nil || list.GetContinue() != "" {
		return err
	}
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(list.GetResourceVersion())
	if err != nil {
		return err
	}
	_, err = edge.Call(s.life, s.injector, func() fault.Operation { return s.becomesReady(revision) },
		func(context.Context) (struct{}, error) { return struct{}{}, nil })
	return err
}

// becomesReady describes that the cache is about to be ready.
func (s *cacheSource) becomesReady(revision uint64) fault.Operation {
	return fault.Operation{Point: s.point, Verb: "ready", Revision: int64(revision)}
}

// Watch implements storage.Interface. Package intercept applies the rules to the events of the
// watch (ForCache). What remains for this package is the initial list of a streaming watch.
func (s *cacheSource) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := s.Interface.Watch(intercept.ForCache(ctx), key, opts)
	if err != nil || opts.SendInitialEvents == nil || !*opts.SendInitialEvents {
		return inner, err
	}
	return newListingWatch(s, inner), nil
}

// listingWatch is a cache's watch that begins with the list that makes the cache
// ready. The rules are asked at the bookmark that ends the list. Until then a
// goroutine passes on event after event; afterwards the cache has the channel of
// the store's watch itself: client-go's reflector (handleAnyWatch) asks for the
// channel before each event. TestListingWatch fails when it no longer does.
type listingWatch struct {
	source *cacheSource
	inner  watch.Interface
	ctx    context.Context // ends with the cache, and with the watch
	stop   context.CancelFunc
	wants  chan struct{} // has room for one: the cache wants the next event

	mu      sync.Mutex
	out     chan watch.Event // has room for one
	wanting bool             // the next event is on its way to out, which is empty
	listed  bool             // nothing comes to out any more
}

func newListingWatch(source *cacheSource, inner watch.Interface) *listingWatch {
	w := &listingWatch{source: source, inner: inner, wants: make(chan struct{}, 1), out: make(chan watch.Event, 1)}
	w.ctx, w.stop = context.WithCancel(source.life)
	go w.list()
	return w
}

// Stop implements watch.Interface.
func (w *listingWatch) Stop() {
	w.stop()
	w.inner.Stop()
}

// ResultChan implements watch.Interface.
func (w *listingWatch) ResultChan() <-chan watch.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.out) > 0, w.wanting:
	case w.listed:
		return w.inner.ResultChan()
	default:
		w.wanting = true
		w.wants <- struct{}{}
	}
	return w.out
}

// list passes on the list, until the cache is ready. If the rules, the store or the
// cache end the watch before, the channel is closed.
func (w *listingWatch) list() {
	for {
		select {
		case <-w.wants:
		case <-w.ctx.Done():
		}
		event, last, ok := w.next()
		if !ok {
			w.Stop()
			close(w.out)
			return
		}
		w.mu.Lock()
		w.out <- event
		w.wanting, w.listed = false, last
		w.mu.Unlock()
		if last {
			return
		}
	}
}

// next returns the cache's next event, and whether it is the list's last: the bookmark or, if
// the rules drop the bookmark, the event after it.
func (w *listingWatch) next() (event watch.Event, last, ok bool) {
	for {
		select {
		case event, ok = <-w.inner.ResultChan():
		case <-w.ctx.Done():
		}
		if !ok {
			return watch.Event{}, false, false
		}
		revision, ends := listEnds(event)
		if !ends {
			return event, last, true
		}
		switch d := edge.Deliver(w.ctx, w.source.injector,
			func() fault.Operation { return w.source.becomesReady(revision) }); {
		case d.Last:
			return watch.Event{}, false, false
		case d.Times > 0:
			return event, true, true
		}
		last = true
	}
}

// listEnds reports whether an event is the bookmark that ends a list, and at which revision.
func listEnds(event watch.Event) (revision uint64, ends bool) {
	if event.Type != watch.Bookmark {
		return 0, false
	}
	if ends, err := storage.HasInitialEventsEndBookmarkAnnotation(event.Object); err != nil || !ends {
		return 0, false
	}
	revision, err := storage.APIObjectVersioner{}.ObjectResourceVersion(event.Object)
	return revision, err == nil
}
