// Package reststoragetest makes REST storage on an in-memory store, without a server
// chain, for tests of what needs it.
package reststoragetest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/intercept"
	"snowglobe.test/envtest/storage/memory"
)

// Prefix begins all keys.
const Prefix = "/registry"

// Start starts an in-memory store, until the test ends.
func Start(t *testing.T) *memory.Store {
	t.Helper()
	store := memory.New("test")
	if err := store.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return store
}

// New returns a Storage on a store until the test ends, and fills in the Config.
func New(t *testing.T, store storage.Backend, cfg reststorage.Config) *reststorage.Storage {
	t.Helper()
	if cfg.Client == nil {
		client, err := store.Client()
		if err != nil {
			t.Fatal(err)
		}
		cfg.Client = client
	}
	cfg.ServerList = store.Endpoints().URLs
	cfg.Connection = intercept.NewConnection()
	s := reststorage.New(cfg)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Resource is a resource to be stored, as one version of it.
type Resource struct {
	schema.GroupVersionResource
	Codecs        serializer.CodecFactory
	Object, List  runtime.Object
	ClusterScoped bool
}

// Options returns what upstream's getter says of a resource in a store.
func (r *Resource) Options(store storage.Backend) generic.RESTOptions {
	media, _ := runtime.SerializerInfoForMediaType(r.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	codec := r.Codecs.CodecForVersions(media.Serializer, r.Codecs.UniversalDeserializer(), r.GroupVersion(), r.GroupVersion())
	config := storagebackend.NewDefaultConfig(Prefix, codec)
	config.Transport.ServerList = store.Endpoints().URLs
	return generic.RESTOptions{StorageConfig: config.ForResource(r.GroupResource()), ResourcePrefix: r.prefix()}
}

// prefix begins the keys of the resource, as those of a CRD.
func (r *Resource) prefix() string {
	if r.Group == "" {
		return "/" + r.Resource
	}
	return "/" + r.Group + "/" + r.Resource
}

// Key returns the key of an object behind Prefix, as storage.Interface takes it.
func (r *Resource) Key(object runtime.Object) (string, error) {
	if r.ClusterScoped {
		return apistorage.NoNamespaceKeyFunc(r.prefix()+"/", object)
	}
	return apistorage.NamespaceKeyFunc(r.prefix()+"/", object)
}

// Add adds a resource to a Storage, and returns its storage and what destroys that;
// the end of the test does too.
func Add(t *testing.T, s *reststorage.Storage, store storage.Backend, r *Resource) (apistorage.Interface, func()) {
	t.Helper()
	etcd := &genericoptions.EtcdOptions{EnableWatchCache: true}
	opts, err := s.Decorate(r.Options(store), etcd).GetRESTOptions(r.GroupResource(), nil)
	if err != nil {
		t.Fatal(err)
	}
	attrs := apistorage.AttrFunc(apistorage.DefaultNamespaceScopedAttr)
	if r.ClusterScoped {
		attrs = apistorage.DefaultClusterScopedAttr
	}
	of, destroy, err := opts.Decorator(opts.StorageConfig, opts.ResourcePrefix, r.Key,
		func() runtime.Object { return r.Object.DeepCopyObject() }, func() runtime.Object { return r.List.DeepCopyObject() }, attrs, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	return of, destroy
}
