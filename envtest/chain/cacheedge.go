package chain

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/intercept"
)

// cacheEdge is the store as one watch cache sees it: what the cache takes from
// its watch, and the list by which it becomes ready, can be bent. Everybody else
// has the store itself.
type cacheEdge struct {
	storage.Interface
	edge  *fault.Injector
	point string
	life  context.Context // ends with the cache
	end   context.CancelFunc
}

func newCacheEdge(store storage.Interface, edge *fault.Injector, resource schema.GroupResource) *cacheEdge {
	e := &cacheEdge{Interface: store, edge: edge, point: "cache/" + resource.String()}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// GetList implements storage.Interface. The last page makes the cache ready.
func (e *cacheEdge) GetList(ctx context.Context, key string, opts storage.ListOptions, into runtime.Object) error {
	err := e.Interface.GetList(ctx, key, opts, into)
	if err != nil || !e.edge.Active() {
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
	d, err := e.edge.At(e.life, func() fault.Operation {
		return fault.Operation{Point: e.point, Verb: "ready", Revision: int64(revision)}
	})
	if d.Kind == fault.Drop {
		return e.edge.Lost(e.life)
	}
	return err
}

// Watch implements storage.Interface. The context of a cache's watch never ends;
// Stop ends the watch.
func (e *cacheEdge) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := e.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(e.life)
	w := &cacheWatch{
		edge: e, inner: inner, stop: stop, out: make(chan watch.Event),
		listing: opts.SendInitialEvents != nil && *opts.SendInitialEvents,
	}
	relay := &intercept.Relay[watch.Event]{In: inner.ResultChan(), Out: w.out, Concerns: w.concerns, Ask: w.ask}
	go func() {
		defer w.Stop()
		relay.Run(watching)
	}()
	return w, nil
}
