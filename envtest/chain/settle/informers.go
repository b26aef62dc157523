package settle

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/scheme"
)

// StartedInformers returns the started informers of a factory, by resource name.
type StartedInformers func() map[string]cache.SharedIndexInformer

// Factory is a SharedInformerFactory; each API has its own type of NewInformerFunc.
type Factory[NewInformerFunc any] interface {
	WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool
	InformerFor(runtime.Object, NewInformerFunc) cache.SharedIndexInformer
}

// Started returns how to find a factory's started informers. It does not list them,
// but says which have synced, by type.
func Started[NewInformerFunc any](factory Factory[NewInformerFunc]) StartedInformers {
	return func() map[string]cache.SharedIndexInformer {
		now := make(chan struct{})
		close(now)
		informers := map[string]cache.SharedIndexInformer{}
		for kind := range factory.WaitForCacheSync(now) {
			object := reflect.New(kind.Elem()).Interface().(runtime.Object)
			var none NewInformerFunc // there is an informer already
			informers[resourceOf(object).String()] = factory.InformerFor(object, none)
		}
		return informers
	}
}

// resourceOf returns the resource of an object of one of upstream's types.
func resourceOf(object runtime.Object) schema.GroupResource {
	for _, scheme := range []*runtime.Scheme{kubescheme.Scheme, apiextensionsscheme.Scheme, aggregatorscheme.Scheme} {
		if kinds, _, err := scheme.ObjectKinds(object); err == nil {
			resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
			return resource.GroupResource()
		}
	}
	return schema.GroupResource{}
}

// behind says how an informer differs from its watch cache, a line for each object.
func behind[T any](resource string, cached []runtime.Object, informer []T) ([]string, error) {
	want, err := revisions(cached)
	if err != nil {
		return nil, fmt.Errorf("the watch cache of %s: %w", resource, err)
	}
	have, err := revisions(informer)
	if err != nil {
		return nil, fmt.Errorf("an informer of %s: %w", resource, err)
	}
	var lines []string
	for name, revision := range want {
		if have[name] != revision {
			lines = append(lines, fmt.Sprintf("an informer has not seen %s %s at revision %s", resource, name, revision))
		}
	}
	for name := range have {
		if want[name] == "" {
			lines = append(lines, fmt.Sprintf("an informer has not seen that %s %s is deleted", resource, name))
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// revisions returns the resource versions of objects.
func revisions[T any](objects []T) (map[cache.ObjectName]string, error) {
	revisions := make(map[cache.ObjectName]string, len(objects))
	for _, object := range objects {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, fmt.Errorf("%T: %w", object, err)
		}
		revisions[cache.MetaObjectToName(accessor)] = accessor.GetResourceVersion()
	}
	return revisions, nil
}
