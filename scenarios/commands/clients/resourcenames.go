package clients

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"

	"snowglobe.test/internal/manifests"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// longestShortName is the length of the longest short names of resources, such as netpol. A
// name of at most that length may be one, so it is not checked.
const longestShortName = 6

// ResourceAt returns a check of the resource that an argument names; the first argument is
// number 1. It accepts any name if a file of the script defines resources.
func (c *Clients) ResourceAt(number int) func(args []string) error {
	return func(args []string) error {
		if number > len(args) || bringsResources(c.run.Script.Files()) {
			return nil
		}
		return checkResource(args[number-1])
	}
}

// checkResource refuses a name that looks like a misspelt resource of Kubernetes. Any other
// unknown name may be a resource that only the server knows.
func checkResource(name string) error {
	if len(name) <= longestShortName || strings.ContainsAny(name, "$.") {
		return nil
	}
	names, err := builtinNames()
	if err != nil {
		return err
	}
	if _, known := names[strings.ToLower(name)]; known {
		return nil
	}
	plurals := slices.Compact(slices.Sorted(maps.Values(names)))
	if hint := nearest.DidYouMean(name, plurals); hint != "" {
		return fmt.Errorf("%w: no resource is called %q%s", engine.ErrUsage, name, hint)
	}
	return nil
}

// builtinNames is builtinResources, called only once: that takes milliseconds.
var builtinNames = sync.OnceValues(builtinResources)

// builtinTypes are the types of Kubernetes' own groups.
var builtinTypes = sync.OnceValues(func() (*runtime.Scheme, error) {
	types := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme)
	return types, add.AddToScheme(types)
})

// builtinResources are the names of Kubernetes' own resources, plural and singular, each
// with the plural.
func builtinResources() (map[string]string, error) {
	types, err := builtinTypes()
	names := map[string]string{}
	for kind := range types.AllKnownTypes() {
		if strings.HasSuffix(kind.Kind, "List") || strings.HasSuffix(kind.Kind, "Options") {
			continue
		}
		plural, singular := meta.UnsafeGuessKindToResource(kind)
		names[plural.Resource], names[singular.Resource] = plural.Resource, plural.Resource
	}
	return names, err
}

// bringsResources reports whether a file of the script defines further resources.
func bringsResources(files []script.File) bool {
	for _, file := range files {
		for _, document := range manifests.Cut(file.Text) {
			var object struct {
				Kind string `json:"kind"`
			}
			if yaml.Unmarshal([]byte(document.Text), &object) == nil && (object.Kind == crdKind.Kind || object.Kind == "APIService") {
				return true
			}
		}
	}
	return false
}
