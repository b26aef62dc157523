package bench

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"snowglobe.test/bench/wire"
)

// cacherFloor is upstream's watch cache on a store, with typed objects as protobuf in it, as an
// API server has it, but with no server around.
type cacherFloor struct {
	storeFloor
	kind   kind
	inner  closable
	cacher *cacher.Cacher
	cached *cacher.CacheDelegator
}

// closable is what etcd3.New returns.
type closable interface {
	apistorage.Interface
	Close()
}

// prepare implements backend.
func (f *cacherFloor) prepare(ctx context.Context) (from string, err error) {
	f.kind = kinds[f.opts.Resource]
	if err := f.start(ctx); err != nil {
		return "", err
	}
	if err := f.openCache(ctx); err != nil {
		return "", err
	}
	for writer := range f.objects {
		group := writer % f.groups
		object, err := f.kind.typed(objectName(writer), map[string]string{groupLabel: f.selectorOf(group)}, f.payload())
		if err != nil {
			return "", err
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			return "", err
		}
		accessor.SetNamespace(f.namespaceOf(group))
		out := f.kind.empty()
		if err := f.cached.Create(ctx, f.key(writer), object, out, 0); err != nil {
			return "", err
		}
		if accessor, err = meta.Accessor(out); err != nil {
			return "", err
		}
		from = accessor.GetResourceVersion()
	}
	return from, nil
}

func (f *cacherFloor) openCache(ctx context.Context) (err error) {
	versioner, codec := apistorage.APIObjectVersioner{}, f.kind.codec()
	f.inner, err = etcd3.New(f.client, nil, codec, f.kind.empty, f.kind.emptyList, "/", floorPrefix, f.kind.gvr().GroupResource(),
		identity.NewEncryptCheckTransformer(), etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(codec, versioner), versioner)
	if err != nil {
		return err
	}
	f.cacher, err = cacher.NewCacherFromConfig(cacher.Config{
		Storage: f.inner, Versioner: versioner, GroupResource: f.kind.gvr().GroupResource(), Codec: codec,
		EventsHistoryWindow: cacher.DefaultEventFreshDuration, ResourcePrefix: floorPrefix,
		KeyFunc:      func(object runtime.Object) (string, error) { return apistorage.NamespaceKeyFunc(floorPrefix, object) },
		GetAttrsFunc: attributes, NewFunc: f.kind.empty, NewListFunc: f.kind.emptyList,
		Indexers: &cache.Indexers{}, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	f.cached = cacher.NewCacheDelegator(f.cacher, f.inner)
	return f.cacher.Wait(ctx)
}

// attributes are by what watchers can select an object.
func attributes(object runtime.Object) (labels.Set, fields.Set, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, nil, err
	}
	return accessor.GetLabels(), fields.Set{"metadata.name": accessor.GetName(), "metadata.namespace": accessor.GetNamespace()}, nil
}

func (f *cacherFloor) namespaceOf(group int) string {
	return fmt.Sprintf("bench-%d", f.namespaceNumber(group))
}

// key is that of a writer's object.
func (f *cacherFloor) key(writer int) string {
	return floorPrefix + f.namespaceOf(writer%f.groups) + "/" + objectName(writer)
}

// write implements backend.
func (f *cacherFloor) write(ctx context.Context, writer int, at wire.Stamp) error {
	change := func(object runtime.Object, _ apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
		accessor, err := meta.Accessor(object)
		if err == nil {
			accessor.SetAnnotations(map[string]string{wire.StampAnnotation: at.String()})
		}
		return object, nil, err
	}
	return f.cached.GuaranteedUpdate(ctx, f.key(writer), f.kind.empty(), false, nil, change, nil)
}

// watch implements backend.
func (f *cacherFloor) watch(ctx context.Context, _, group int, from string) (stream, error) {
	selector := labels.Everything()
	if f.opts.Selectors > 1 {
		selector = labels.SelectorFromSet(labels.Set{groupLabel: f.selectorOf(group)})
	}
	events, err := f.cached.Watch(ctx, floorPrefix+f.namespaceOf(group)+"/", apistorage.ListOptions{
		ResourceVersion: from, Recursive: true,
		Predicate: apistorage.SelectionPredicate{Label: selector, Field: fields.Everything(), GetAttrs: attributes, AllowWatchBookmarks: true},
	})
	if err != nil {
		return nil, err
	}
	return &decoded{load: f.load, events: events}, nil
}

// close implements backend.
func (f *cacherFloor) close(ctx context.Context) error {
	if f.cached != nil {
		f.cached.Stop()
	}
	if f.cacher != nil {
		f.cacher.Stop()
	}
	if f.inner != nil {
		f.inner.Close()
	}
	return f.storeFloor.close(ctx)
}
