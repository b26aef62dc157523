package inject

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

// cacheSource is the store as one watch cache sees it: rules can reach the list by
// which the cache becomes ready, and what the cache takes from its watch. Everybody
// else has the store itself.
type cacheSource struct {
	storage.Interface
	injector *fault.Injector
	point    string
	life     context.Context // ends with the cache
}

// CacheSource returns a store as the watch cache of a resource sees it, and what ends
// that.
func CacheSource(store storage.Interface, i *fault.Injector, resource schema.GroupResource) (source storage.Interface, end func()) {
	s := &cacheSource{Interface: store, injector: i, point: "cache/" + resource.String()}
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
	_, err = fault.Call(s.life, s.injector, func() fault.Operation { return s.becomesReady(revision) },
		func(context.Context) (struct{}, error) { return struct{}{}, nil })
	return err
}

// becomesReady describes that the cache is about to be ready.
func (s *cacheSource) becomesReady(revision uint64) fault.Operation {
	return fault.Operation{Point: s.point, Verb: "ready", Revision: int64(revision)}
}

// Watch implements storage.Interface. What the watch of the store delivers meets
// the rules there, so that only the list that a watch may begin with is left.
func (s *cacheSource) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := s.Interface.Watch(intercept.ForCache(ctx), key, opts)
	if err != nil || opts.SendInitialEvents == nil || !*opts.SendInitialEvents {
		return inner, err
	}
	return newListingWatch(s, inner), nil
}
