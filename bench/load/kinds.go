package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"snowglobe.test/internal/nearest"
)

// Kind is a kind of objects that a load can write and watch. Writers change an annotation, so
// that the rest of an object, with its payload, is what upstream copies, converts and encodes.
type Kind struct {
	schema.GroupVersionKind
	resource string
	protobuf bool   // whether there is protobuf of it
	stored   string // the version that is stored, if a webhook converts it to the one that is used
	// fill puts a payload into an object that has only its metadata.
	fill func(object map[string]any, payload string)
}

// kinds are those that a load can use, by what --resource calls them.
var kinds = map[string]Kind{
	"configmaps": {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", true, "",
		func(object map[string]any, payload string) {
			object["data"] = map[string]any{"payload": payload}
		}},
	"pods": {schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", true, "",
		func(object map[string]any, payload string) {
			object["spec"] = map[string]any{
				"automountServiceAccountToken": false,
				"schedulerName":                "none", // it never runs
				"containers": []any{map[string]any{"name": "main", "image": "none",
					"args": []any{payload}}},
			}
		}},
	"leases": {schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "leases", true, "",
		func(object map[string]any, payload string) {
			object["spec"] = map[string]any{"holderIdentity": payload}
		}},
	"widgets": {schema.GroupVersionKind{Group: customGroup, Version: "v1", Kind: "Widget"}, "widgets", false,
		"", fillWidget},
	"converted-widgets": {schema.GroupVersionKind{Group: customGroup, Version: "v2", Kind: "Widget"}, "widgets", false,
		"v1", fillWidget},
}

func fillWidget(object map[string]any, payload string) {
	object["spec"] = map[string]any{"payload": payload}
}

// customGroup is the API group of custom resources.
const customGroup = "bench.snowglobe.test"

// KindOf finds a kind by its resource.
func KindOf(resource string) (Kind, error) {
	found, ok := kinds[resource]
	if !ok {
		names := slices.Sorted(maps.Keys(kinds))
		return Kind{}, fmt.Errorf("resource %q is unknown%s; use %s", resource, nearest.DidYouMean(resource, names),
			strings.Join(names, ", "))
	}
	return found, nil
}

// Custom reports whether the kind is of a custom resource.
func (k Kind) Custom() bool { return k.Group == customGroup }

// GVR is the resource of the objects.
func (k Kind) GVR() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.resource)
}

// path is the URL path of the objects in a namespace.
func (k Kind) path(namespace string) string {
	prefix := "/apis/" + k.Group + "/"
	if k.Group == "" {
		prefix = "/api/"
	}
	return prefix + k.Version + "/namespaces/" + namespace + "/" + k.resource
}

// object is an object of the kind, as JSON is made of.
func (k Kind) object(name string, labels map[string]string, payload string) map[string]any {
	object := map[string]any{
		"apiVersion": k.GroupVersion().String(), "kind": k.Kind,
		"metadata": map[string]any{"name": name, "labels": labels},
	}
	k.fill(object, payload)
	return object
}

// Empty is an object of a kind that is built in, with nothing in it.
func (k Kind) Empty() runtime.Object { return newObject(k.GroupVersionKind) }

// EmptyList is a list of such objects.
func (k Kind) EmptyList() runtime.Object {
	return newObject(k.GroupVersion().WithKind(k.Kind + "List"))
}

func newObject(gvk schema.GroupVersionKind) runtime.Object {
	object, err := scheme.Scheme.New(gvk)
	utilruntime.Must(err) // client-go knows what is built in
	return object
}

// Typed is an object of a kind that is built in.
func (k Kind) Typed(name string, labels map[string]string, payload string) (runtime.Object, error) {
	object := k.Empty()
	return object, runtime.DefaultUnstructuredConverter.FromUnstructured(k.object(name, labels, payload), object)
}

// Codec is that of a kind that is built in, as a store has it.
func (k Kind) Codec() runtime.Codec {
	protobuf, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	return scheme.Codecs.CodecForVersions(protobuf.Serializer, scheme.Codecs.UniversalDeserializer(), k.GroupVersion(),
		k.GroupVersion())
}
