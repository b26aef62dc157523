package reststorage

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	backend "snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/intercept"
)

// Resource is the storage of one resource behind its watch cache.
type Resource struct {
	name                 schema.GroupResource
	prefix               string // of all keys in the store
	resourcePrefix       string // of the keys of the resource, behind prefix
	store                *cacher.CacheDelegator
	cache                *cacher.Cacher
	source               *source // of cache
	newFunc, newListFunc func() runtime.Object
	destroyed            chan struct{} // closed when it is
}

// Name returns the resource as rules name it, such as "deployments.apps".
func (r *Resource) Name() string { return r.name.String() }

// keyPrefix is how the keys of the resource begin, without the slash at its end.
func (r *Resource) keyPrefix() string { return path.Join("/", r.prefix, r.resourcePrefix) }

// Destroyed reports whether the storage is gone, as for a deleted or changed CRD.
func (r *Resource) Destroyed() bool {
	select {
	case <-r.destroyed:
		return true
	default:
		return false
	}
}

// Cached returns the revision that the watch cache is at, and its objects if they
// are wanted. A cache that is not ready is an error.
func (r *Resource) Cached(ctx context.Context, objects bool) (int64, []runtime.Object, error) {
	if err := r.store.ReadinessCheck(); err != nil {
		return 0, nil, err
	}
	list := r.newListFunc()
	opts := storage.ListOptions{ResourceVersion: "0", Predicate: storage.Everything, Recursive: objects}
	if err := r.store.GetList(ctx, r.resourcePrefix, opts, list); err != nil {
		return 0, nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return 0, nil, err
	}
	revision, err := strconv.ParseInt(accessor.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, nil, err
	}
	cached, err := meta.ExtractList(list)
	return revision, cached, err
}

// WaitFresh waits until the watch cache has seen a revision, or is destroyed. The
// key is one of the resource's.
func (r *Resource) WaitFresh(ctx context.Context, key string, revision int64) error {
	opts := storage.GetOptions{IgnoreNotFound: true, ResourceVersion: strconv.FormatInt(revision, 10)}
	for {
		// The cache answers when it is at the revision.
		err := r.store.Get(ctx, strings.TrimPrefix(key, r.prefix), opts, r.newFunc())
		switch {
		case err == nil, r.Destroyed():
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("the watch cache of %s has not caught up: %w", r.name, context.Cause(ctx))
		case !storage.IsTooLargeResourceVersion(err): // that is: not within upstream's three seconds
			return fmt.Errorf("the watch cache of %s has not caught up: %w", r.name, err)
		}
	}
}

func (s *Storage) add(resource *Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources[resource.keyPrefix()] = resource
}

// remove forgets a destroyed resource, unless a changed CRD's new one is there.
func (s *Storage) remove(resource *Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(resource.destroyed)
	resource.source.taken.Tell()
	if s.resources[resource.keyPrefix()] == resource {
		delete(s.resources, resource.keyPrefix())
	}
}

// ResourceOf returns the resource with a watch cache that a key belongs to, or nil.
func (s *Storage) ResourceOf(key string) *Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for prefix := path.Dir(key); prefix != "/" && prefix != "."; prefix = path.Dir(prefix) {
		if resource := s.resources[prefix]; resource != nil {
			return resource
		}
	}
	return nil
}

// Resources returns the resources that have a watch cache, by name.
func (s *Storage) Resources() []*Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.resources), func(a, b *Resource) int { return strings.Compare(a.Name(), b.Name()) })
}

// Revision is the revision of the store.
func (s *Storage) Revision(ctx context.Context) (int64, error) {
	return backend.Revision(ctx, s.client)
}

// RequestProgress asks the store to tell the watch caches how far it is, as they do
// themselves for a consistent read.
func (s *Storage) RequestProgress(ctx context.Context) error {
	// Upstream's watch caches have streams apart from all other watches.
	if utilfeature.DefaultFeatureGate.Enabled(features.SeparateCacheWatchRPC) {
		ctx = metadata.NewOutgoingContext(ctx, metadata.Pairs("source", "cache"))
	}
	for _, resource := range s.Resources() {
		if err := s.client.RequestProgress(intercept.WithStream(clientv3.WithRequireLeader(ctx), resource.Name())); err != nil {
			return fmt.Errorf("ask the store how far it is: %w", err)
		}
	}
	return nil
}
