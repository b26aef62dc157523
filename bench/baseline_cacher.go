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

// cacherBaseline is upstream's watch cache on a store, with typed objects as protobuf in it, as an
// API server has it, but with no server around.
type cacherBaseline struct {
	storeBaseline
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
func (b *cacherBaseline) prepare(ctx context.Context) (from string, err error) {
	b.kind = kinds[b.opts.Resource]
	if err := b.start(ctx); err != nil {
		return "", err
	}
	if err := b.openCache(ctx); err != nil {
		return "", err
	}
	for writer := range b.objects {
		group := writer % b.groups
		object, err := b.kind.typed(objectName(writer), map[string]string{groupLabel: b.selectorOf(group)}, b.payload())
		if err != nil {
			return "", err
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			return "", err
		}
		accessor.SetNamespace(b.namespaceOf(group))
		out := b.kind.empty()
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

func (b *cacherBaseline) openCache(ctx context.Context) (err error) {
	versioner, codec := apistorage.APIObjectVersioner{}, b.kind.codec()
	b.inner, err = etcd3.New(b.client, nil, codec, b.kind.empty, b.kind.emptyList, "/", baselinePrefix, b.kind.gvr().GroupResource(),
		identity.NewEncryptCheckTransformer(), etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(codec, versioner), versioner)
	if err != nil {
		return err
	}
	b.cacher, err = cacher.NewCacherFromConfig(cacher.Config{
		Storage: b.inner, Versioner: versioner, GroupResource: b.kind.gvr().GroupResource(), Codec: codec,
		EventsHistoryWindow: cacher.DefaultEventFreshDuration, ResourcePrefix: baselinePrefix,
		KeyFunc: func(object runtime.Object) (string, error) {
			return apistorage.NamespaceKeyFunc(baselinePrefix, object)
		},
		GetAttrsFunc: attributes, NewFunc: b.kind.empty, NewListFunc: b.kind.emptyList,
		Indexers: &cache.Indexers{}, Clock: clock.RealClock{},
	})
	if err != nil {
		return err
	}
	b.cached = cacher.NewCacheDelegator(b.cacher, b.inner)
	return b.cacher.Wait(ctx)
}

// attributes are by what watchers can select an object.
func attributes(object runtime.Object) (labels.Set, fields.Set, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, nil, err
	}
	return accessor.GetLabels(), fields.Set{"metadata.name": accessor.GetName(), "metadata.namespace": accessor.GetNamespace()}, nil
}

func (b *cacherBaseline) namespaceOf(group int) string {
	return fmt.Sprintf("bench-%d", b.namespaceNumber(group))
}

// key is that of a writer's object.
func (b *cacherBaseline) key(writer int) string {
	return baselinePrefix + b.namespaceOf(writer%b.groups) + "/" + objectName(writer)
}

// write implements backend.
func (b *cacherBaseline) write(ctx context.Context, writer int, at wire.Stamp) error {
	change := func(object runtime.Object, _ apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
		accessor, err := meta.Accessor(object)
		if err == nil {
			accessor.SetAnnotations(map[string]string{wire.StampAnnotation: at.String()})
		}
		return object, nil, err
	}
	return b.cached.GuaranteedUpdate(ctx, b.key(writer), b.kind.empty(), false, nil, change, nil)
}

// watch implements backend.
func (b *cacherBaseline) watch(ctx context.Context, _, group int, from string) (stream, error) {
	selector := labels.Everything()
	if b.opts.Selectors > 1 {
		selector = labels.SelectorFromSet(labels.Set{groupLabel: b.selectorOf(group)})
	}
	events, err := b.cached.Watch(ctx, baselinePrefix+b.namespaceOf(group)+"/", apistorage.ListOptions{
		ResourceVersion: from, Recursive: true,
		Predicate: apistorage.SelectionPredicate{Label: selector, Field: fields.Everything(), GetAttrs: attributes, AllowWatchBookmarks: true},
	})
	if err != nil {
		return nil, err
	}
	return &decoded{load: b.load, events: events}, nil
}

// close implements backend.
func (b *cacherBaseline) close(ctx context.Context) error {
	if b.cached != nil {
		b.cached.Stop()
	}
	if b.cacher != nil {
		b.cacher.Stop()
	}
	if b.inner != nil {
		b.inner.Close()
	}
	return b.storeBaseline.close(ctx)
}
