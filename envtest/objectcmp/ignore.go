package objectcmp

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IgnoreServerFields ignores what the API server sets, so that an object that was sent can
// be equal to the one that came back:
//
//   - uid, resourceVersion, generation, creationTimestamp, managedFields and selfLink in
//     the metadata of an object;
//   - resourceVersion, continue, remainingItemCount and selfLink in that of a list;
//   - the TypeMeta of a typed object, where one side has none: typed clients drop it. That
//     of an unstructured object counts, since nothing else says what kind it is.
//
// It looks at the object itself, and at the items of a list, but not inside an object, such
// as at spec.template.metadata: the server sets nothing there. It does not ignore
// deletionTimestamp, which says that the object is going away, nor the status (see
// [IgnoreStatus]), nor defaults.
func IgnoreServerFields() cmp.Option {
	return cmp.Options{
		ignore([]string{"metadata"},
			"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "continue", "remainingItemCount"),
		cmp.FilterValues(func(x, y metav1.TypeMeta) bool {
			return x == metav1.TypeMeta{} || y == metav1.TypeMeta{}
		}, cmp.Ignore()),
	}
}

// IgnoreStatus ignores the status of an object and of the items of a list.
func IgnoreStatus() cmp.Option {
	return ignore(nil, "status")
}

// ignore ignores the fields of these names below a path of an object.
func ignore(parent []string, names ...string) cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool {
		// The last name decides nearly always, and is cheap.
		if name, ok := key(p, len(p)-1); !ok || !slices.Contains(names, name) {
			return false
		}
		path := objectPath(p)
		return len(path) == len(parent)+1 && slices.Equal(path[:len(parent)], parent)
	}, cmp.Ignore())
}
