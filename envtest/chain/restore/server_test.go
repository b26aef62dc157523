package restore

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	apistorage "k8s.io/apiserver/pkg/storage"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/scheme"
	"k8s.io/kube-aggregator/pkg/controllers/autoregister"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/reststorage/reststoragetest"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/internal/watchfilter"
)

var (
	configMaps = &reststoragetest.Resource{
		GroupVersionResource: corev1.SchemeGroupVersion.WithResource("configmaps"), Codecs: kubescheme.Codecs,
		Object: &corev1.ConfigMap{}, List: &corev1.ConfigMapList{},
	}
	definitions = &reststoragetest.Resource{
		GroupVersionResource: apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"), Codecs: apiextensionsscheme.Codecs,
		Object: &apiextensionsv1.CustomResourceDefinition{}, List: &apiextensionsv1.CustomResourceDefinitionList{}, ClusterScoped: true,
	}
	services = &reststoragetest.Resource{
		GroupVersionResource: apiregistrationv1.SchemeGroupVersion.WithResource("apiservices"), Codecs: aggregatorscheme.Codecs,
		Object: &apiregistrationv1.APIService{}, List: &apiregistrationv1.APIServiceList{}, ClusterScoped: true,
	}
)

// testServer is what of an API server matters here: watch caches, the informer of
// CRDs, and an aggregator that follows them a second later.
type testServer struct {
	*Server
	client  *clientv3.Client
	storage map[string]apistorage.Interface
	handler crdHandler
	// gate holds the watch cache of ConfigMaps; nil while it is not held.
	gate  atomic.Pointer[chan struct{}]
	lazy  atomic.Bool // the aggregator does not follow the CRDs
	tasks sync.WaitGroup
}

// crdHandler is told what to serve, in tests by one goroutine at a time.
type crdHandler struct {
	followed  []string // the names of CRDs
	forgotten int      // how many times
}

// Follow implements CRDHandler.
func (h *crdHandler) Follow(crd *apiextensionsv1.CustomResourceDefinition) {
	h.followed = append(h.followed, crd.Name)
}

// Forget implements CRDHandler.
func (h *crdHandler) Forget() { h.forgotten++ }

// hold holds the watch cache of ConfigMaps for some time.
func (s *testServer) hold() (release func()) {
	gate := make(chan struct{})
	s.gate.Store(&gate)
	return func() { close(gate) }
}

func startServer(t *testing.T, store *memory.Store) *testServer {
	t.Helper()
	s := &testServer{storage: map[string]apistorage.Interface{}}
	rest := reststoragetest.New(t, store, reststorage.Config{InterceptCache: s.holdConfigMaps(t.Context())})
	s.client = rest.Client().Client
	for _, resource := range []*reststoragetest.Resource{configMaps, definitions, services} {
		s.storage[resource.Resource], _ = reststoragetest.Add(t, rest, store, resource)
	}
	informer := cache.NewSharedIndexInformer(listWatch(definitions, s.storage["customresourcedefinitions"]), definitions.Object, 0, nil)
	crds, err := ObserveCRDs(informer, &s.handler, func() {})
	require.NoError(t, err)
	s.Server = &Server{
		Caches:  noCaches{},
		Storage: rest, CRDs: crds, Prefix: reststoragetest.Prefix,
		IdentityLabel: "apiserver.kubernetes.io/identity", ServiceIP: "10.0.0.1",
	}
	ctx, stop := context.WithCancel(t.Context())
	s.tasks.Go(func() { informer.RunWithContext(ctx) })
	s.tasks.Go(func() { s.aggregate(ctx, t) })
	t.Cleanup(func() {
		stop()
		s.tasks.Wait()
	})
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	return s
}

// holdConfigMaps keeps the watch cache of ConfigMaps behind the store while there is a
// gate.
func (s *testServer) holdConfigMaps(ctx context.Context) func(apistorage.Interface, schema.GroupResource) (apistorage.Interface, func()) {
	return func(store apistorage.Interface, resource schema.GroupResource) (apistorage.Interface, func()) {
		if resource != configMaps.GroupResource() {
			return store, func() {}
		}
		return &heldStore{Interface: store, ctx: ctx, server: s}, func() {}
	}
}

type heldStore struct {
	apistorage.Interface
	ctx    context.Context
	server *testServer
}

// Watch implements storage.Interface.
func (h *heldStore) Watch(ctx context.Context, key string, opts apistorage.ListOptions) (watch.Interface, error) {
	inner, err := h.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return watchfilter.New(inner, func(event watch.Event) (watch.Event, bool) {
		if gate := h.server.gate.Load(); gate != nil {
			select {
			case <-*gate:
			case <-h.ctx.Done():
			}
		}
		return event, true
	}), nil
}

func listWatch(resource *reststoragetest.Resource, storage apistorage.Interface) cache.ListerWatcher {
	key := "/" + resource.Group + "/" + resource.Resource
	options := func(opts metav1.ListOptions) apistorage.ListOptions {
		predicate := apistorage.Everything
		predicate.AllowWatchBookmarks = opts.AllowWatchBookmarks
		return apistorage.ListOptions{
			ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: opts.ResourceVersionMatch,
			Predicate: predicate, Recursive: true, SendInitialEvents: opts.SendInitialEvents,
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			list := resource.List.DeepCopyObject()
			return list, storage.GetList(ctx, key, options(opts), list)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			inner, err := storage.Watch(ctx, key, options(opts))
			if err != nil {
				return nil, err
			}
			return watchfilter.New(inner, func(event watch.Event) (watch.Event, bool) {
				if cached, ok := event.Object.(runtime.CacheableObject); ok { // meant for encoders
					event.Object = cached.GetObject()
				}
				return event, true
			}), nil
		},
	}
}

// aggregate makes the APIServices in the store those of the CRDs, once a second.
func (s *testServer) aggregate(ctx context.Context, t *testing.T) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.lazy.Load() {
			continue
		}
		wanted := s.CRDs.served()
		var list apiregistrationv1.APIServiceList
		opts := apistorage.ListOptions{Predicate: apistorage.Everything, Recursive: true}
		err := s.storage["apiservices"].GetList(ctx, "/apiregistration.k8s.io/apiservices", opts, &list)
		assert.True(t, err == nil || ctx.Err() != nil, err)
		for i := range list.Items {
			if service := &list.Items[i]; wanted.Has(service.Name) {
				wanted.Delete(service.Name)
			} else {
				s.delete(ctx, t, services, service)
			}
		}
		for _, name := range sets.List(wanted) {
			s.create(ctx, t, services, &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{autoregister.AutoRegisterManagedLabel: "true"}, CreationTimestamp: metav1.Now(),
			}})
		}
	}
}

func (s *testServer) create(ctx context.Context, t *testing.T, resource *reststoragetest.Resource, object runtime.Object) {
	t.Helper()
	key, err := resource.Key(object)
	if err == nil {
		err = s.storage[resource.Resource].Create(ctx, key, object, resource.Object.DeepCopyObject(), 0)
	}
	assert.True(t, err == nil || ctx.Err() != nil, err)
}

func (s *testServer) delete(ctx context.Context, t *testing.T, resource *reststoragetest.Resource, object runtime.Object) {
	t.Helper()
	key, err := resource.Key(object)
	if err == nil {
		err = s.storage[resource.Resource].Delete(ctx, key, resource.Object.DeepCopyObject(), nil, apistorage.ValidateAllObjectFunc, nil, apistorage.DeleteOptions{})
	}
	assert.True(t, err == nil || ctx.Err() != nil, err)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// crd returns a CRD of a group with one served version, v1.
func crd(group string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    group,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}, {Name: "v0"}},
		},
	}
}

// contents returns all keys of the store with their values.
func (s *testServer) contents(t *testing.T) map[string]string {
	t.Helper()
	all, err := s.client.Get(t.Context(), "", clientv3.WithFromKey())
	require.NoError(t, err)
	contents := map[string]string{}
	for _, kv := range all.Kvs {
		contents[string(kv.Key)] = string(kv.Value)
	}
	return contents
}
