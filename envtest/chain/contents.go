package chain

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// contents are what a watch cache has at a revision: the objects' revisions, by
// namespace and name.
type contents struct {
	revision int64
	objects  map[string]string
}

// contents reads the watch cache as it is, without the objects if only the
// revision is wanted. A cache that is not ready is an error.
func (r *cachedResource) contents(ctx context.Context, objects bool) (*contents, error) {
	if err := r.store.ReadinessCheck(); err != nil {
		return nil, err
	}
	list := r.newListFunc()
	opts := apistorage.ListOptions{ResourceVersion: "0", Predicate: apistorage.Everything, Recursive: objects}
	if err := r.store.GetList(ctx, r.folder, opts, list); err != nil {
		return nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	c := &contents{objects: map[string]string{}}
	if c.revision, err = strconv.ParseInt(accessor.GetResourceVersion(), 10, 64); err != nil {
		return nil, err
	}
	return c, meta.EachListItem(list, func(object runtime.Object) error { return note(c.objects, object) })
}

// note adds the revision of an object.
func note(objects map[string]string, object any) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	objects[accessor.GetNamespace()+"/"+accessor.GetName()] = accessor.GetResourceVersion()
	return nil
}

// unseen says what an informer that has some objects has not seen.
func (c *contents) unseen(resource string, seen []any) []string {
	have := map[string]string{}
	for _, object := range seen {
		if err := note(have, object); err != nil {
			return []string{fmt.Sprintf("an informer of %s has %T: %v", resource, object, err)}
		}
	}
	var unseen []string
	for _, name := range slices.Sorted(maps.Keys(c.objects)) {
		if have[name] != c.objects[name] {
			unseen = append(unseen, fmt.Sprintf("an informer has not seen %s %s at revision %s", resource, name, c.objects[name]))
		}
		delete(have, name)
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		unseen = append(unseen, fmt.Sprintf("an informer has not seen that %s %s is deleted", resource, name))
	}
	return unseen
}

// informerFactory is upstream's, whatever the group: it tells the types of its informers
// that have started, and has the informer of a type.
type informerFactory struct {
	started  func(stop <-chan struct{}) map[reflect.Type]bool
	informer func(runtime.Object) cache.SharedIndexInformer
}

// factories are those of the chain.
func (c *Chain) factories() []informerFactory {
	kube, crds := c.generic.informers, c.servers.apiextensions.Informers
	apiServices := c.servers.aggregator.APIRegistrationInformers
	return []informerFactory{
		{kube.WaitForCacheSync, func(o runtime.Object) cache.SharedIndexInformer { return kube.InformerFor(o, nil) }},
		{crds.WaitForCacheSync, func(o runtime.Object) cache.SharedIndexInformer { return crds.InformerFor(o, nil) }},
		{apiServices.WaitForCacheSync, func(o runtime.Object) cache.SharedIndexInformer { return apiServices.InformerFor(o, nil) }},
	}
}

// startedInformers returns the chain's informers that have started, by the
// resources they watch.
func (c *Chain) startedInformers() map[string][]cache.SharedIndexInformer {
	now := make(chan struct{})
	close(now)
	informers := map[string][]cache.SharedIndexInformer{}
	for _, f := range c.factories() {
		for kind := range f.started(now) {
			object := reflect.New(kind.Elem()).Interface().(runtime.Object)
			resource := resourceOf(object).String()
			informers[resource] = append(informers[resource], f.informer(object))
		}
	}
	return informers
}

// resourceOf returns the resource of an object of one of upstream's types.
func resourceOf(object runtime.Object) schema.GroupResource {
	for _, scheme := range []*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme} {
		if kinds, _, err := scheme.ObjectKinds(object); err == nil {
			resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
			return resource.GroupResource()
		}
	}
	return schema.GroupResource{}
}
