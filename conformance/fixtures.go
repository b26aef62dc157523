package conformance

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
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
	crd        = apiextensionsv1.CustomResourceDefinition
	crdVersion = apiextensionsv1.CustomResourceDefinitionVersion
	schemaOf   = apiextensionsv1.JSONSchemaProps
)

// groupSuffix ends the API groups of all cases.
const groupSuffix = ".conformance.snowglobe.test"

// widgetCRD returns a cluster-scoped definition in a group of the target's own: v1
// Widgets with spec.size and spec.color. It does not install it.
func (t *Target) widgetCRD(change ...func(*crd)) *crd {
	group := t.Name + groupSuffix
	definition := &crd{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
				ShortNames: []string{"wdg"}, Categories: []string{"all"},
			},
			Versions: []crdVersion{widgetVersion("v1", true)},
		},
	}
	for _, f := range change {
		f(definition)
	}
	return definition
}

func widgetVersion(name string, stored bool) crdVersion {
	return crdVersion{
		Name: name, Served: true, Storage: stored,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schemaOf{
			Type: "object",
			Properties: map[string]schemaOf{
				"spec": {Type: "object", Properties: map[string]schemaOf{
					"size":  {Type: "integer"},
					"color": {Type: "string"},
				}},
				"status": {Type: "object", Properties: map[string]schemaOf{
					"phase": {Type: "string"},
				}},
			},
		}},
	}
}

// withSpec changes the schema of spec in the first version.
func withSpec(change func(spec *schemaOf)) func(*crd) {
	return func(definition *crd) {
		root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		spec := root.Properties["spec"]
		change(&spec)
		root.Properties["spec"] = spec
	}
}

// withSubresources sets the subresources of the first version.
func withSubresources(s apiextensionsv1.CustomResourceSubresources) func(*crd) {
	return func(definition *crd) { definition.Spec.Versions[0].Subresources = &s }
}

// widgets is an installed resource, in its first version.
type widgets struct {
	dynamic.ResourceInterface
	target   *Target
	crd      *crd
	resource schema.GroupVersionResource
	path     string // of the collection
}

// install creates a CRD for the case, and waits until it is established and served.
func (t *Target) install(ctx context.Context, definition *crd) *widgets {
	created, err := t.create(ctx, definition)
	t.must(err, "create CRD %s", definition.Name)
	t.crdWith(ctx, created, apiextensionsv1.Established, apiextensionsv1.ConditionTrue)
	w := t.widgetsOf(created, created.Spec.Versions[0].Name)
	t.served(ctx, w.path)
	return w
}

// create creates a definition. It is removed when the case ends.
func (t *Target) create(ctx context.Context, definition *crd) (*crd, error) {
	created, err := t.crds.Create(ctx, definition, metav1.CreateOptions{})
	if err == nil {
		t.Cleanup(func(ctx context.Context) error { return t.crds.Delete(ctx, definition.Name, metav1.DeleteOptions{}) })
	}
	return created, err
}

// widgetsOf returns the resource of one version of a definition.
func (t *Target) widgetsOf(definition *crd, version string) *widgets {
	resource := schema.GroupVersionResource{Group: definition.Spec.Group, Version: version, Resource: definition.Spec.Names.Plural}
	return &widgets{
		ResourceInterface: t.dynamic.Resource(resource), target: t, crd: definition, resource: resource,
		path: fmt.Sprintf("/apis/%s/%s/%s", resource.Group, resource.Version, resource.Resource),
	}
}

func (w *widgets) removeCRD(ctx context.Context) {
	w.target.must(w.target.crds.Delete(ctx, w.crd.Name, metav1.DeleteOptions{}), "delete the CRD")
}

// served polls until a path is answered 200: handlers follow a CRD's conditions
// through an informer, and nothing that could be watched says that they have.
func (t *Target) served(ctx context.Context, path string) {
	t.Eventually(ctx, func() int { return t.get(ctx, path).code }).Should(gomega.Equal(http.StatusOK), "%s is not served", path)
}

// crdWith waits until a definition has a condition, and returns the definition.
func (t *Target) crdWith(ctx context.Context, definition *crd, kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus) *crd {
	return t.crdUntil(ctx, definition, func(seen *crd) bool { return condition(seen, kind).Status == status })
}

// crdUntil watches a definition until a condition holds.
func (t *Target) crdUntil(ctx context.Context, definition *crd, wanted func(*crd) bool) *crd {
	events := t.watch(ctx, t.crds.Watch, metav1.SingleObject(metav1.ObjectMeta{Name: definition.Name}))
	for {
		if seen, ok := events.next(ctx).Object.(*crd); ok && wanted(seen) {
			events.Stop()
			return seen
		}
	}
}

// condition returns the condition of a type, an empty one if there is none.
func condition(definition *crd, kind apiextensionsv1.CustomResourceDefinitionConditionType) apiextensionsv1.CustomResourceDefinitionCondition {
	return ptr.Deref(apihelpers.FindCRDCondition(definition, kind), apiextensionsv1.CustomResourceDefinitionCondition{})
}

// object returns a Widget without creating it. Each setting is a path and a value.
func (w *widgets) object(name string, settings ...setting) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(w.resource.GroupVersion().String())
	object.SetKind(w.crd.Spec.Names.Kind)
	object.SetName(name)
	for _, s := range settings {
		w.target.set(object, s)
	}
	return object
}

// make applies a Widget: the server delays the first POSTs to a new CRD by two
// seconds (customresource_handler.go, serveResource), and POST has cases of its own.
func (w *widgets) make(ctx context.Context, name string, settings ...setting) *unstructured.Unstructured {
	created, err := w.apply(ctx, name, settings...)
	w.target.must(err, "create Widget %s", name)
	return created
}

func (w *widgets) apply(ctx context.Context, name string, settings ...setting) (*unstructured.Unstructured, error) {
	return w.Apply(ctx, name, w.object(name, settings...), metav1.ApplyOptions{FieldManager: "conformance"})
}

// probe applies a Widget as a dry run.
func (w *widgets) probe(ctx context.Context, settings ...setting) (*unstructured.Unstructured, error) {
	dry := metav1.ApplyOptions{FieldManager: "conformance", DryRun: []string{metav1.DryRunAll}}
	return w.Apply(ctx, "probe", w.object("probe", settings...), dry)
}

func (w *widgets) read(ctx context.Context, name string) *unstructured.Unstructured {
	got, err := w.Get(ctx, name, metav1.GetOptions{})
	w.target.must(err, "get Widget %s", name)
	return got
}

func (w *widgets) list(ctx context.Context) *unstructured.UnstructuredList {
	list, err := w.List(ctx, metav1.ListOptions{})
	w.target.must(err, "list Widgets")
	return list
}

func (w *widgets) merge(ctx context.Context, name, patch string) (*unstructured.Unstructured, error) {
	return w.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
}

// setting sets a value at a path of an object.
type setting struct {
	value any
	path  []string
}

func at(value any, path ...string) setting { return setting{value, path} }

func (t *Target) set(object *unstructured.Unstructured, s setting) {
	t.must(unstructured.SetNestedField(object.Object, s.value, s.path...), "set %v", s.path)
}

// value returns the value at a path of an object, nil if there is none.
func value(object *unstructured.Unstructured, path ...string) any {
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	return found
}
