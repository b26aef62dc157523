package reststorage

import (
	"fmt"
	"path"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
)

// undecorated is generic.UndecoratedStorage on the shared client: the etcd3 store.
func (s *Storage) undecorated(config *storagebackend.ConfigForResource, resourcePrefix string, _ func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	store, destroy, err := s.newStore(config, resourcePrefix, newFunc, newListFunc)
	if err != nil {
		return nil, nil, err
	}
	return store, s.owned(destroy), nil
}

func (s *Storage) newStore(config *storagebackend.ConfigForResource, resourcePrefix string, newFunc, newListFunc func() runtime.Object) (storage.Interface, func(), error) {
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	versioner := storage.APIObjectVersioner{}
	decoder := etcd3.NewDefaultDecoder(config.Codec, versioner)
	unsafeDelete := utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	if unsafeDelete {
		transformer = etcd3.WithCorruptObjErrorHandlingTransformer(transformer)
		decoder = etcd3.WithCorruptObjErrorHandlingDecoder(decoder)
	}
	client := s.clientFor(config.GroupResource.String(), path.Join("/", config.Prefix, resourcePrefix)+"/")
	store, err := etcd3.New(client, s.compactor, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource, transformer, config.LeaseManagerConfig, decoder, versioner)
	if err != nil {
		return nil, nil, fmt.Errorf("storage of %s: %w", config.GroupResource, err)
	}
	if unsafeDelete {
		return etcd3.NewStoreWithUnsafeCorruptObjectDeletion(store, config.GroupResource), store.Close, nil
	}
	return store, store.Close, nil
}

// cached is registry.StorageWithCacher on the shared client: watch cache and store.
func (s *Storage) cached(config *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	store, destroyStore, err := s.newStore(config, resourcePrefix, newFunc, newListFunc)
	if err != nil {
		return nil, nil, err
	}
	behind, endIntercept := store, func() {}
	if s.cfg.InterceptCache != nil {
		behind, endIntercept = s.cfg.InterceptCache(store, config.GroupResource)
	}
	source := &source{Interface: behind}
	window, ok := s.cfg.EventsHistoryWindows[config.GroupResource]
	if !ok {
		window = config.EventsHistoryWindow
	}
	watchCache, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             source,
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       config.GroupResource,
		EventsHistoryWindow: window,
		ResourcePrefix:      resourcePrefix,
		KeyFunc:             keyFunc,
		NewFunc:             newFunc,
		NewListFunc:         newListFunc,
		GetAttrsFunc:        attrs,
		IndexerFuncs:        triggers,
		Indexers:            indexers,
		Codec:               config.Codec,
		Clock:               s.clock,
	})
	if err != nil {
		endIntercept()
		destroyStore()
		return nil, nil, fmt.Errorf("watch cache of %s: %w", config.GroupResource, err)
	}
	delegator := cacher.NewCacheDelegator(watchCache, store)
	resource := &Resource{
		name: config.GroupResource, prefix: config.Prefix, resourcePrefix: resourcePrefix, store: delegator, cache: watchCache,
		source: source, newFunc: newFunc, newListFunc: newListFunc, destroyed: make(chan struct{}),
	}
	s.add(resource)
	destroy := s.owned(func() {
		s.remove(resource)
		endIntercept()
		source.end()
		delegator.Stop()
		watchCache.Stop()
		destroyStore()
	})
	return s.tellWrites(resource), destroy, nil
}

// owned makes destroy run once, however often it is called, and registers it for Close. Usually
// upstream's registry calls it. Close calls it if nobody has, as for the storages of a server
// whose construction failed halfway.
func (s *Storage) owned(destroy func()) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	key := s.made
	s.live[key] = sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.live, key)
		s.mu.Unlock()
		destroy()
	})
	return s.live[key]
}
