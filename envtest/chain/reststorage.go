package chain

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/intercept"
)

// restStorage makes the REST storage of every server of the chain on one shared
// etcd client. Upstream's own factory dials one gRPC connection for each of some
// seventy resources; the store, the watch cache and the decoders are upstream's
// here all the same.
type restStorage struct {
	connection *intercept.Connection
	client     *kubernetes.Client // the connection's direct one
	edge       *fault.Injector
	writes     *Writes
	compactor  interface {
		etcd3.Compactor
		Stop()
	}
	servers   []string // the endpoints of the store this client speaks to
	clock     *cacheClock
	windows   map[schema.GroupResource]time.Duration // how long caches keep events, if not as upstream's
	closeOnce sync.Once
	closeErr  error

	mu     sync.Mutex
	caches map[string]*cachedResource // by the prefix of the keys
}

// cachedResource is the storage of one resource behind its watch cache.
type cachedResource struct {
	name        schema.GroupResource
	prefix      string // of all keys of the store
	folder      string // of its own keys, behind the prefix
	store       storage.Interface
	newFunc     func() runtime.Object
	newListFunc func() runtime.Object
	done        chan struct{} // closed when it is destroyed
}

func (r *cachedResource) destroyed() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// newRESTStorage has all of it go by a connection, which it gives its client.
func newRESTStorage(connection *intercept.Connection, client *kubernetes.Client, servers []string, compaction time.Duration, edge *fault.Injector, writes *Writes) *restStorage {
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	connection.Attach(client, edge, writes)
	s := &restStorage{
		connection: connection, client: connection.Direct(), writes: writes, edge: edge, servers: servers, clock: newCacheClock(),
		caches: map[string]*cachedResource{},
	}
	if compaction > 0 {
		s.compactor = etcd3.NewCompactor(s.intercepted("", "").Client, compaction, clock.RealClock{}, nil)
	}
	return s
}

// close ends the compactor, the connection and the caches' clock; the stores on it must be destroyed.
func (s *restStorage) close(ctx context.Context) error {
	s.closeOnce.Do(func() {
		if s.compactor != nil {
			s.compactor.Stop()
		}
		s.closeErr = s.connection.Close(ctx)
		s.clock.stop()
	})
	return s.closeErr
}

// decorate returns upstream's getter with the storage of every resource that
// lives in the chain's store made on the shared client.
func (s *restStorage) decorate(upstream generic.RESTOptionsGetter, etcd *genericoptions.EtcdOptions) (generic.RESTOptionsGetter, error) {
	sizes, err := genericoptions.ParseWatchCacheSizes(etcd.WatchCacheSizes)
	if err != nil {
		return nil, fmt.Errorf("watch cache sizes: %w", err)
	}
	return &restOptionsGetter{upstream: upstream, storage: s, cacheEnabled: etcd.EnableWatchCache, cacheSizes: sizes}, nil
}

type restOptionsGetter struct {
	upstream     generic.RESTOptionsGetter
	storage      *restStorage
	cacheEnabled bool
	cacheSizes   map[schema.GroupResource]int
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g *restOptionsGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	opts, err := g.upstream.GetRESTOptions(resource, example)
	if err != nil {
		return opts, err
	}
	if !slices.Equal(opts.StorageConfig.Transport.ServerList, g.storage.servers) {
		return opts, nil // --etcd-servers-overrides put it elsewhere
	}
	// Upstream leaves a resource uncached whose size is set to zero.
	size, sized := g.cacheSizes[resource]
	if g.cacheEnabled && (!sized || size > 0) {
		opts.Decorator = g.storage.cached
	} else {
		opts.Decorator = g.storage.raw
	}
	return opts, nil
}

// raw is a generic.StorageDecorator: the etcd3 store alone.
func (s *restStorage) raw(config *storagebackend.ConfigForResource, resourcePrefix string, _ func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
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
	client := s.intercepted(config.GroupResource.String(), path.Join("/", config.Prefix, resourcePrefix)+"/")
	store, err := etcd3.New(client, s.compactor, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource, transformer, config.LeaseManagerConfig, decoder, versioner)
	if err != nil {
		return nil, nil, fmt.Errorf("storage of %s: %w", config.GroupResource, err)
	}
	destroy := sync.OnceFunc(store.Close)
	if unsafeDelete {
		return etcd3.NewStoreWithUnsafeCorruptObjectDeletion(store, config.GroupResource), destroy, nil
	}
	return store, destroy, nil
}

// cached is a generic.StorageDecorator: the watch cache in front of the store.
func (s *restStorage) cached(config *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	store, destroyStore, err := s.raw(config, resourcePrefix, keyFunc, newFunc, newListFunc, attrs, triggers, indexers)
	if err != nil {
		return nil, nil, err
	}
	behind, endSource := store, func() {}
	if s.edge != nil {
		source := newCacheSource(store, s.edge, config.GroupResource)
		behind, endSource = source, source.end
	}
	window, ok := s.windows[config.GroupResource]
	if !ok {
		window = config.EventsHistoryWindow
	}
	watchCache, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             behind,
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
		endSource()
		destroyStore()
		return nil, nil, fmt.Errorf("watch cache of %s: %w", config.GroupResource, err)
	}
	delegator := cacher.NewCacheDelegator(watchCache, store)
	resource := &cachedResource{
		name: config.GroupResource, prefix: config.Prefix, folder: resourcePrefix, store: delegator,
		newFunc: newFunc, newListFunc: newListFunc, done: make(chan struct{}),
	}
	s.remember(resource)
	destroy := sync.OnceFunc(func() {
		close(resource.done)
		endSource()
		delegator.Stop()
		watchCache.Stop()
		destroyStore()
	})
	return delegator, destroy, nil
}

// intercepted returns the client for a resource whose keys begin with a prefix, or
// for none in particular, which rules can reach.
func (s *restStorage) intercepted(resource, prefix string) *kubernetes.Client {
	return s.connection.Client(intercept.Identity{Resource: resource, Prefix: prefix, Caller: callerOf})
}

// callerOf is who makes the request that a call to the store is for.
func callerOf(ctx context.Context) string {
	if who, ok := request.UserFrom(ctx); ok {
		return who.GetName()
	}
	return ""
}

// remember notes the storage of a resource; that of a CRD may be made again.
func (s *restStorage) remember(resource *cachedResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caches[path.Join("/", resource.prefix, resource.folder)] = resource
}

// cacheOf returns the living storage that a key belongs to, nil if none is
// cached.
func (s *restStorage) cacheOf(key string) *cachedResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for folder := path.Dir(key); folder != "/" && folder != "."; folder = path.Dir(folder) {
		if resource := s.caches[folder]; resource != nil && !resource.destroyed() {
			return resource
		}
	}
	return nil
}

// addHealthChecks adds upstream's two etcd checks, by upstream's names, on the
// shared client: upstream's own dial a gRPC connection each.
func (s *restStorage) addHealthChecks(config *genericapiserver.Config, etcd *genericoptions.EtcdOptions) {
	config.AddHealthChecks(healthz.NamedGroupedCheck("etcd", "etcd", s.check(etcd.StorageConfig.HealthcheckTimeout)))
	config.AddReadyzChecks(healthz.NamedGroupedCheck("etcd-readiness", "etcd-readiness", s.check(etcd.StorageConfig.ReadycheckTimeout)))
}

func (s *restStorage) check(timeout time.Duration) func(*http.Request) error {
	if timeout == 0 {
		timeout = storagebackend.DefaultHealthcheckTimeout
	}
	client := s.intercepted("", "")
	return func(*http.Request) error {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if _, err := client.KV.Get(ctx, "/registry/health", clientv3.WithLimit(1)); err != nil {
			return fmt.Errorf("error getting data from etcd: %w", err)
		}
		return nil
	}
}
