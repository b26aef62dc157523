package suite

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

type (
	CRD        = apiextensionsv1.CustomResourceDefinition
	CRDVersion = apiextensionsv1.CustomResourceDefinitionVersion
	Schema     = apiextensionsv1.JSONSchemaProps
)

// GroupSuffix ends the API groups of all cases.
const GroupSuffix = ".conformance.snowglobe.test"

// WidgetCRD returns a cluster-scoped definition in an API group that only this T uses: v1
// Widgets with spec.size and spec.color. It does not install it.
func (t *T) WidgetCRD(change ...func(*CRD)) *CRD {
	group := t.Name + GroupSuffix
	definition := &CRD{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
				ShortNames: []string{"wdg"}, Categories: []string{"all"},
			},
			Versions: []CRDVersion{WidgetVersion("v1", true)},
		},
	}
	for _, f := range change {
		f(definition)
	}
	return definition
}

// WidgetVersion is a version of the definition, served, and stored or not.
func WidgetVersion(name string, stored bool) CRDVersion {
	return CRDVersion{
		Name: name, Served: true, Storage: stored,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &Schema{
			Type: "object",
			Properties: map[string]Schema{
				"spec": {Type: "object", Properties: map[string]Schema{
					"size":  {Type: "integer"},
					"color": {Type: "string"},
				}},
				"status": {Type: "object", Properties: map[string]Schema{
					"phase": {Type: "string"},
				}},
			},
		}},
	}
}

// WithSpec changes the schema of spec in the first version.
func WithSpec(change func(spec *Schema)) func(*CRD) {
	return func(definition *CRD) {
		root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		spec := root.Properties["spec"]
		change(&spec)
		root.Properties["spec"] = spec
	}
}

// WithSubresources sets the subresources of the first version.
func WithSubresources(s apiextensionsv1.CustomResourceSubresources) func(*CRD) {
	return func(definition *CRD) { definition.Spec.Versions[0].Subresources = &s }
}

// Widgets is an installed resource, in its first version.
type Widgets struct {
	dynamic.ResourceInterface
	T        *T
	CRD      *CRD
	Resource schema.GroupVersionResource
	Path     string // of the collection
}

// Install creates a CRD for the case, and waits until it is established and served.
func (t *T) Install(ctx context.Context, definition *CRD) *Widgets {
	created := Create(ctx, t, t.CRDs.Create, definition)
	t.CRDWith(ctx, created, apiextensionsv1.Established, apiextensionsv1.ConditionTrue)
	w := t.WidgetsOf(created, created.Spec.Versions[0].Name)
	t.Served(ctx, w.Path)
	return w
}

// WidgetsOf returns the resource of one version of a definition.
func (t *T) WidgetsOf(definition *CRD, version string) *Widgets {
	resource := schema.GroupVersionResource{Group: definition.Spec.Group, Version: version,
		Resource: definition.Spec.Names.Plural}
	return &Widgets{
		ResourceInterface: t.Dynamic.Resource(resource), T: t, CRD: definition, Resource: resource,
		Path: fmt.Sprintf("/apis/%s/%s/%s", resource.Group, resource.Version, resource.Resource),
	}
}

// RemoveCRD deletes the definition, or fails the case.
func (w *Widgets) RemoveCRD(ctx context.Context) {
	w.T.Must(w.T.CRDs.Delete(ctx, w.CRD.Name, metav1.DeleteOptions{}), "delete the CRD")
}

// CRDWith waits until a definition has a condition, and returns the definition.
func (t *T) CRDWith(ctx context.Context, definition *CRD, kind apiextensionsv1.CustomResourceDefinitionConditionType,
	status apiextensionsv1.ConditionStatus) *CRD {
	return t.CRDUntil(ctx, definition, func(seen *CRD) bool { return Condition(seen, kind).Status == status })
}

// CRDUntil watches a definition until wanted returns true, and returns the definition.
func (t *T) CRDUntil(ctx context.Context, definition *CRD, wanted func(*CRD) bool) *CRD {
	events := t.Watch(ctx, t.CRDs.Watch, metav1.SingleObject(metav1.ObjectMeta{Name: definition.Name}))
	for {
		if seen, ok := events.Next(ctx).Object.(*CRD); ok && wanted(seen) {
			events.Stop()
			return seen
		}
	}
}

// Condition returns the condition of a type, an empty one if there is none.
func Condition(definition *CRD,
	kind apiextensionsv1.CustomResourceDefinitionConditionType) apiextensionsv1.CustomResourceDefinitionCondition {
	return ptr.Deref(apihelpers.FindCRDCondition(definition, kind), apiextensionsv1.CustomResourceDefinitionCondition{})
}

// Object returns a Widget without creating it. Each setting is a path and a value.
func (w *Widgets) Object(name string, settings ...Setting) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(w.Resource.GroupVersion().String())
	object.SetKind(w.CRD.Spec.Names.Kind)
	object.SetName(name)
	for _, s := range settings {
		w.T.Set(object, s)
	}
	return object
}

// Make applies a Widget: the server delays the first POSTs to a new CRD by two
// seconds (customresource_handler.go, serveResource), and POST has cases of its own.
func (w *Widgets) Make(ctx context.Context, name string, settings ...Setting) *unstructured.Unstructured {
	created, err := w.TryMake(ctx, name, settings...)
	w.T.Must(err, "create Widget %s", name)
	return created
}

// TryMake is Make that returns its error.
func (w *Widgets) TryMake(ctx context.Context, name string, settings ...Setting) (*unstructured.Unstructured, error) {
	return w.Apply(ctx, name, w.Object(name, settings...), metav1.ApplyOptions{FieldManager: "conformance"})
}

// Probe applies a Widget as a dry run.
func (w *Widgets) Probe(ctx context.Context, settings ...Setting) (*unstructured.Unstructured, error) {
	dry := metav1.ApplyOptions{FieldManager: "conformance", DryRun: []string{metav1.DryRunAll}}
	return w.Apply(ctx, "probe", w.Object("probe", settings...), dry)
}

// Read gets a Widget, or fails the case.
func (w *Widgets) Read(ctx context.Context, name string) *unstructured.Unstructured {
	got, err := w.Get(ctx, name, metav1.GetOptions{})
	w.T.Must(err, "get Widget %s", name)
	return got
}

// MustList lists the Widgets, or fails the case.
func (w *Widgets) MustList(ctx context.Context) *unstructured.UnstructuredList {
	list, err := w.List(ctx, metav1.ListOptions{})
	w.T.Must(err, "list Widgets")
	return list
}

// Merge sends a JSON merge patch.
func (w *Widgets) Merge(ctx context.Context, name, patch string) (*unstructured.Unstructured, error) {
	return w.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
}

// Setting sets a value at a path of an object.
type Setting struct {
	value any
	path  []string
}

// At is a value at a path.
func At(value any, path ...string) Setting { return Setting{value, path} }

// Set sets a value of an object, or fails the case.
func (t *T) Set(object *unstructured.Unstructured, s Setting) {
	t.Must(unstructured.SetNestedField(object.Object, s.value, s.path...), "set %v", s.path)
}

// Value returns the value at a path of an object, nil if there is none.
func Value(object *unstructured.Unstructured, path ...string) any {
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return found
}
