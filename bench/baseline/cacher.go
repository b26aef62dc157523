package baseline

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

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/wire"
)

// Cacher is the backend of loads on upstream's watch cache on a store.
func Cacher(l *load.Load) load.Backend { return &cacherBackend{storeBackend: storeBackend{Load: l}} }

// cacherBackend is upstream's watch cache on a store, with typed objects as protobuf in it, as an
// API server has it, but with no server around.
type cacherBackend struct {
	storeBackend
	kind   load.Kind
	inner  closable
	cacher *cacher.Cacher
	cached *cacher.CacheDelegator
}

// closable is what etcd3.New returns.
type closable interface {
	apistorage.Interface
	Close()
}

// Prepare implements Backend.
func (b *cacherBackend) Prepare(ctx context.Context) (from string, err error) {
	if b.kind, err = load.KindOf(b.Options.Resource); err != nil {
		return "", err
	}
	if err := b.start(ctx); err != nil {
		return "", err
	}
	if err := b.openCache(ctx); err != nil {
		return "", err
	}
	for writer := range b.Objects {
		group := writer % b.Groups
		object, err := b.kind.Typed(load.ObjectName(writer), map[string]string{load.GroupLabel: b.Selector(group)},
			b.Payload())
		if err != nil {
			return "", err
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			return "", err
		}
		accessor.SetNamespace(b.namespaceOf(group))
		out := b.kind.Empty()
		if err := b.cached.Create(ctx, b.key(writer), object, out, 0); err != nil {
			return "", err
		}
		if accessor, err = meta.Accessor(out); err != nil {
			return "", err
		}
		from = accessor.GetResourceVersion()
	}
	return from, nil
}

func (b *cacherBackend) openCache(ctx context.Context) (err error) {
	versioner, codec := apistorage.APIObjectVersioner{}, b.kind.Codec()
	b.inner, err = etcd3.New(b.client, nil, codec, b.kind.Empty, b.kind.EmptyList, "/", prefix,
		b.kind.GVR().GroupResource(),
		identity.NewEncryptCheckTransformer(), etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(codec,
			versioner), versioner)
	if err != nil {
		return err
	}
	b.cacher, err = cacher.NewCacherFromConfig(cacher.Config{
		Storage: b.inner, Versioner: versioner, GroupResource: b.kind.GVR().GroupResource(), Codec: codec,
		EventsHistoryWindow: cacher.DefaultEventFreshDuration, ResourcePrefix: prefix,
		KeyFunc: func(object runtime.Object) (string, error) {
			return apistorage.NamespaceKeyFunc(prefix, object)
		},
		GetAttrsFunc: apistorage.DefaultNamespaceScopedAttr, NewFunc: b.kind.Empty, NewListFunc: b.kind.EmptyList,
		Indexers: &cache.Indexers{}, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	b.cached = cacher.NewCacheDelegator(b.cacher, b.inner)
	return b.cacher.Wait(ctx)
}

func (b *cacherBackend) namespaceOf(group int) string {
	return fmt.Sprintf("bench-%d", b.NamespaceNumber(group))
}

// key is that of a writer's object.
func (b *cacherBackend) key(writer int) string {
	return prefix + b.namespaceOf(writer%b.Groups) + "/" + load.ObjectName(writer)
}

// Write implements Backend.
func (b *cacherBackend) Write(ctx context.Context, writer int, at wire.Stamp) error {
	change := func(object runtime.Object, _ apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
		accessor, err := meta.Accessor(object)
		if err == nil {
			accessor.SetAnnotations(map[string]string{wire.StampAnnotation: at.String()})
		}
		return object, nil, err
	}
	return b.cached.GuaranteedUpdate(ctx, b.key(writer), b.kind.Empty(), false, nil, change, nil)
}

// Watch implements Backend.
func (b *cacherBackend) Watch(ctx context.Context, _, group int, from string) (load.Stream, error) {
	selector := labels.Everything()
	if b.Options.Selectors > 1 {
		selector = labels.SelectorFromSet(labels.Set{load.GroupLabel: b.Selector(group)})
	}
	events, err := b.cached.Watch(ctx, prefix+b.namespaceOf(group)+"/", apistorage.ListOptions{
		ResourceVersion: from, Recursive: true,
		Predicate: apistorage.SelectionPredicate{Label: selector, Field: fields.Everything(),
			GetAttrs: apistorage.DefaultNamespaceScopedAttr, AllowWatchBookmarks: true},
	})
	if err != nil {
		return nil, err
	}
	return load.NewDecoded(b.Load, events), nil
}

// Close implements Backend.
func (b *cacherBackend) Close(ctx context.Context) error {
	if b.cached != nil {
		b.cached.Stop()
	}
	if b.cacher != nil {
		b.cacher.Stop()
	}
	if b.inner != nil {
		b.inner.Close()
	}
	return b.storeBackend.Close(ctx)
}
