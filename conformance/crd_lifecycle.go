package conformance

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var crdCases = []Case{
	{ID: "S10/crd-is-established", Test: crdIsEstablished,
		Promise: "A CRD whose names are free becomes NamesAccepted and Established; its status has the accepted names and the storage version."},
	{ID: "S10/custom-resource-is-an-object", Test: customResourceIsAnObject,
		Promise: "A custom resource is created, read, updated and deleted like any object: uid, creation time, and a generation that counts changes of spec."},
	{ID: "S10/name-conflict-is-refused", Test: nameConflictIsRefused,
		Promise: "A second CRD of a group with a kind or short name that is taken gets a condition that says so, and is neither established nor served."},
	{ID: "S10/versions-share-their-objects", Test: versionsShareTheirObjects,
		Promise: "With conversion None, an object is available in every served version and only its apiVersion differs; other versions are 404."},
	{ID: "S10/stored-versions-are-remembered", Test: storedVersionsAreRemembered,
		Promise: "When another version becomes the storage version, status.storedVersions keeps both."},
	{ID: "S10/status-is-a-subresource", Test: statusIsASubresource,
		Promise: "With the status subresource, a write to the object leaves status alone, a write to status leaves the rest alone, and only the first increases the generation."},
	{ID: "S10/scale-is-a-subresource", Test: scaleIsASubresource,
		Promise: "The scale subresource reads and writes the fields the CRD names, as an autoscaling/v1 Scale."},
	{ID: "S10/printer-columns-make-a-table", Test: printerColumnsMakeATable,
		Promise: "additionalPrinterColumns are the columns of a Table, after the name."},
	{ID: "S10/selectable-fields-select", Test: selectableFieldsSelect,
		Promise: "A field that the CRD declares selectable can be used in a field selector; another field can't."},
	{ID: "S10/deleting-a-CRD-deletes-its-objects", Test: deletingACRDDeletesItsObjects,
		Promise: "Deleting a CRD deletes its objects, which watchers see, and then the CRD; its path is then 404, and a new CRD of the same name starts empty."},
	{ID: "S10/terminating-CRD-waits-for-its-objects", Test: terminatingCRDWaitsForItsObjects,
		Promise: "A deleted CRD stays Terminating while a finalizer keeps one of its objects, and admits no new objects."},
}

// k8s.io/apiextensions-apiserver/pkg/controller/{status,establish}.
func crdIsEstablished(ctx context.Context, t *Target) {
	definition := t.widgetCRD()
	definition.Spec.Names.Singular, definition.Spec.Names.ListKind = "", "" // are defaulted
	created, err := t.create(ctx, definition)
	t.must(err, "create the CRD")
	seen := t.crdWith(ctx, created, apiextensionsv1.Established, apiextensionsv1.ConditionTrue)
	t.Expect(condition(seen, apiextensionsv1.NamesAccepted).Status).To(gomega.Equal(apiextensionsv1.ConditionTrue))
	t.Expect(condition(seen, apiextensionsv1.Terminating).Status).NotTo(gomega.Equal(apiextensionsv1.ConditionTrue))
	t.Expect(seen.Status.AcceptedNames).To(gomega.Equal(apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
		ShortNames: []string{"wdg"}, Categories: []string{"all"},
	}))
	t.Expect(seen.Status.StoredVersions).To(gomega.Equal([]string{"v1"}))
	t.served(ctx, "/apis/"+seen.Spec.Group+"/v1/widgets")
}

// k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go.
func customResourceIsAnObject(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	created, err := w.Create(ctx, w.object("one", at(int64(1), "spec", "size")), metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(created.GetUID()).NotTo(gomega.BeEmpty())
	t.Expect(created.GetCreationTimestamp().Time.IsZero()).To(gomega.BeFalse())
	t.Expect(created.GetGeneration()).To(gomega.BeEquivalentTo(1))
	t.Expect(w.read(ctx, "one")).To(gomega.Equal(created))

	labelled := created.DeepCopy()
	labelled.SetLabels(map[string]string{"a": "b"})
	labelled, err = w.Update(ctx, labelled, metav1.UpdateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(labelled.GetGeneration()).To(gomega.BeEquivalentTo(1), "changing metadata must not change the generation")
	t.Expect(t.number(labelled.GetResourceVersion())).To(gomega.BeNumerically(">", t.number(created.GetResourceVersion())))

	patched, err := w.merge(ctx, "one", `{"spec":{"size":2}}`)
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(patched.GetGeneration()).To(gomega.BeEquivalentTo(2))
	t.Expect(patched.GetUID()).To(gomega.Equal(created.GetUID()))
	t.Expect(value(patched, "spec", "size")).To(gomega.BeEquivalentTo(2))

	t.Expect(w.Delete(ctx, "one", metav1.DeleteOptions{})).To(gomega.Succeed())
	t.Expect(w.Get(ctx, "one", metav1.GetOptions{})).Error().To(beStatus(http.StatusNotFound, metav1.StatusReasonNotFound))
}

// k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go.
func nameConflictIsRefused(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	for plural, want := range map[string]struct {
		names  apiextensionsv1.CustomResourceDefinitionNames
		reason string
	}{
		"gadgets": {apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", ListKind: "GadgetList"}, "KindConflict"},
		"gizmos":  {apiextensionsv1.CustomResourceDefinitionNames{Kind: "Gizmo", ShortNames: []string{"wdg"}}, "ShortNamesConflict"},
	} {
		rival := t.widgetCRD()
		rival.Name = plural + "." + w.resource.Group
		rival.Spec.Names = want.names
		rival.Spec.Names.Plural = plural
		created, err := t.create(ctx, rival)
		t.must(err, "create CRD %s", rival.Name)
		seen := t.crdWith(ctx, created, apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse)
		t.Expect(condition(seen, apiextensionsv1.NamesAccepted).Reason).To(gomega.Equal(want.reason), rival.Name)
		t.Expect(condition(seen, apiextensionsv1.Established).Status).To(gomega.Equal(apiextensionsv1.ConditionFalse), rival.Name)
		t.answered(ctx, "/apis/"+w.resource.Group+"/v1/"+plural, http.StatusNotFound)
	}
	t.Expect(t.get(ctx, w.path).code).To(gomega.Equal(http.StatusOK), "the first CRD keeps its names")
}

// k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go.
func versionsShareTheirObjects(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(func(definition *crd) {
		unserved := widgetVersion("v1alpha1", false)
		unserved.Served = false
		definition.Spec.Versions = []crdVersion{widgetVersion("v1", true), widgetVersion("v1beta1", false), unserved}
	}))
	old, gone := t.widgetsOf(w.crd, "v1beta1"), t.widgetsOf(w.crd, "v1alpha1")
	created := old.make(ctx, "one", at("red", "spec", "color"))
	t.Expect(created.GetAPIVersion()).To(gomega.Equal(old.resource.GroupVersion().String()))
	read := w.read(ctx, "one")
	t.Expect(read.GetAPIVersion()).To(gomega.Equal(w.resource.GroupVersion().String()))
	read.SetAPIVersion(created.GetAPIVersion())
	read.SetManagedFields(nil)
	created.SetManagedFields(nil)
	t.Expect(read.Object).To(gomega.Equal(created.Object))

	events := t.watch(ctx, w.Watch, metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	t.Expect(old.merge(ctx, "one", `{"spec":{"color":"blue"}}`)).Error().NotTo(gomega.HaveOccurred())
	changed := events.next(ctx).Object.GetObjectKind().GroupVersionKind()
	t.Expect(changed.GroupVersion()).To(gomega.Equal(w.resource.GroupVersion()))
	t.Expect(value(w.read(ctx, "one"), "spec", "color")).To(gomega.Equal("blue"))
	t.answered(ctx, gone.path, http.StatusNotFound)
}

// k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go.
func storedVersionsAreRemembered(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(func(definition *crd) {
		definition.Spec.Versions = []crdVersion{widgetVersion("v1beta1", true), widgetVersion("v1", false)}
	}))
	w.make(ctx, "one", at(int64(3), "spec", "size"))
	patch := `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`
	patched, err := t.crds.Patch(ctx, w.crd.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	t.must(err, "make v1 the storage version")
	t.Expect(patched.Status.StoredVersions).To(gomega.ConsistOf("v1beta1", "v1"))
	t.Expect(value(t.widgetsOf(w.crd, "v1").read(ctx, "one"), "spec", "size")).To(gomega.BeEquivalentTo(3))
}

// k8s.io/apiextensions-apiserver/pkg/registry/customresource/status_strategy.go.
func statusIsASubresource(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(withSubresources(apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}})))
	one, err := w.Create(ctx, w.object("one", at(int64(1), "spec", "size"), at("Ready", "status", "phase")), metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(value(one, "status")).To(gomega.BeNil(), "status is not set by create")

	t.set(one, at("Ready", "status", "phase"))
	t.set(one, at(int64(7), "spec", "size"))
	one.SetLabels(map[string]string{"by": "status"})
	one, err = w.UpdateStatus(ctx, one, metav1.UpdateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(value(one, "status", "phase")).To(gomega.Equal("Ready"))
	t.Expect(value(one, "spec", "size")).To(gomega.BeEquivalentTo(1), "spec is not set through status")
	t.Expect(one.GetLabels()).To(gomega.BeEmpty(), "labels are not set through status")
	t.Expect(one.GetGeneration()).To(gomega.BeEquivalentTo(1))

	t.set(one, at("Broken", "status", "phase"))
	t.set(one, at(int64(2), "spec", "size"))
	one, err = w.Update(ctx, one, metav1.UpdateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(value(one, "status", "phase")).To(gomega.Equal("Ready"), "status is not set by update")
	t.Expect(value(one, "spec", "size")).To(gomega.BeEquivalentTo(2))
	t.Expect(one.GetGeneration()).To(gomega.BeEquivalentTo(2))
}

// k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go, ScaleREST.
func scaleIsASubresource(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(withSubresources(apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		Scale: &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size", LabelSelectorPath: new(".status.selector"),
		},
	}), func(definition *crd) {
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = schemaOf{Type: "object", Properties: map[string]schemaOf{
			"size": {Type: "integer"}, "selector": {Type: "string"},
		}}
	}))
	one := w.make(ctx, "one", at(int64(3), "spec", "size"))
	t.set(one, at(map[string]any{"size": int64(2), "selector": "a=b"}, "status"))
	_, err := w.UpdateStatus(ctx, one, metav1.UpdateOptions{})
	t.must(err, "write status")

	scale, err := w.Get(ctx, "one", metav1.GetOptions{}, "scale")
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(scale.GetAPIVersion() + " " + scale.GetKind()).To(gomega.Equal("autoscaling/v1 Scale"))
	t.Expect(value(scale, "spec", "replicas")).To(gomega.BeEquivalentTo(3))
	t.Expect(value(scale, "status", "replicas")).To(gomega.BeEquivalentTo(2))
	t.Expect(value(scale, "status", "selector")).To(gomega.Equal("a=b"))

	t.set(scale, at(int64(5), "spec", "replicas"))
	t.Expect(w.Update(ctx, scale, metav1.UpdateOptions{}, "scale")).Error().NotTo(gomega.HaveOccurred())
	one = w.read(ctx, "one")
	t.Expect(value(one, "spec", "size")).To(gomega.BeEquivalentTo(5))
	t.Expect(value(one, "status", "size")).To(gomega.BeEquivalentTo(2))
}

// tableType is the media type of a list that the server has laid out.
const tableType = "application/json;as=Table;g=meta.k8s.io;v=v1"

// k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
func printerColumnsMakeATable(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(func(definition *crd) {
		definition.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Size", Type: "integer", JSONPath: ".spec.size"},
			{Name: "Color", Type: "string", JSONPath: ".spec.color"},
		}
	}))
	w.make(ctx, "one", at(int64(3), "spec", "size"), at("red", "spec", "color"))
	w.make(ctx, "two", at(int64(4), "spec", "size"))
	var found metav1.Table
	t.json(t.ask(ctx, request{path: w.path, accept: tableType}), &found)
	t.Expect(found.Kind).To(gomega.Equal("Table"))
	column := func(name, kind string) gomega.OmegaMatcher {
		return gomega.And(gomega.HaveField("Name", name), gomega.HaveField("Type", kind))
	}
	t.Expect(found.ColumnDefinitions).To(gomega.HaveExactElements(column("Name", "string"), column("Size", "integer"), column("Color", "string")))
	t.Expect(found.Rows).To(gomega.HaveLen(2))
	t.Expect(found.Rows[0].Cells).To(gomega.Equal([]any{"one", 3.0, "red"}))
	t.Expect(found.Rows[1].Cells).To(gomega.Equal([]any{"two", 4.0, nil}))
}

// k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go,
// selectableFieldSet: KEP-4358.
func selectableFieldsSelect(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(func(definition *crd) {
		definition.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}}
	}))
	w.make(ctx, "one", at("red", "spec", "color"))
	w.make(ctx, "two", at("blue", "spec", "color"))
	list, err := w.List(ctx, metav1.ListOptions{FieldSelector: "spec.color=blue"})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(list.Items).To(gomega.HaveLen(1))
	t.Expect(list.Items[0].GetName()).To(gomega.Equal("two"))
	t.Expect(w.List(ctx, metav1.ListOptions{FieldSelector: "spec.size=1"})).Error().To(beStatus(http.StatusBadRequest, metav1.StatusReasonBadRequest))
}

// gone waits until a definition does not exist any more.
func (t *Target) gone(ctx context.Context, definition *crd) {
	t.Eventually(ctx, func() error {
		_, err := t.crds.Get(ctx, definition.Name, metav1.GetOptions{})
		return err
	}).Should(beStatus(http.StatusNotFound, metav1.StatusReasonNotFound), "CRD %s still exists", definition.Name)
}

// k8s.io/apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go.
func deletingACRDDeletesItsObjects(ctx context.Context, t *Target) {
	definition := t.widgetCRD()
	w := t.install(ctx, definition.DeepCopy())
	t.Expect(w.crd.Finalizers).To(gomega.BeEmpty(), "the finalizer is added by the deletion")
	w.make(ctx, "one")
	w.make(ctx, "two")
	events := t.watch(ctx, w.Watch, metav1.ListOptions{ResourceVersion: w.list(ctx).GetResourceVersion()})
	w.removeCRD(ctx)
	t.Expect(brief(events.take(ctx, 2))).To(gomega.ConsistOf("DELETED one", "DELETED two"))
	t.gone(ctx, w.crd)
	t.Eventually(ctx, func() int { return t.get(ctx, w.path).code }).Should(gomega.Equal(http.StatusNotFound), w.path)

	t.Expect(t.install(ctx, definition).list(ctx).Items).To(gomega.BeEmpty())
}

// k8s.io/apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go and
// pkg/apiserver/customresource_handler.go, crdHandler.serveResource.
func terminatingCRDWaitsForItsObjects(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	w.make(ctx, "held", at([]any{"conformance.snowglobe.test/hold"}, "metadata", "finalizers"))
	release := func(ctx context.Context) error {
		_, err := w.merge(ctx, "held", `{"metadata":{"finalizers":null}}`)
		return err
	}
	t.Cleanup(release)
	w.removeCRD(ctx)
	seen := t.crdWith(ctx, w.crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue)
	t.Expect(seen.DeletionTimestamp).NotTo(gomega.BeNil())
	t.Expect(seen.Finalizers).To(gomega.ContainElement(apiextensionsv1.CustomResourceCleanupFinalizer))
	t.Eventually(ctx, func() error {
		_, err := w.probe(ctx)
		return err
	}).Should(beStatus(http.StatusForbidden, metav1.StatusReasonForbidden), "a terminating CRD admits new objects")
	t.Eventually(ctx, func() *metav1.Time { return w.read(ctx, "held").GetDeletionTimestamp() }).ShouldNot(gomega.BeNil())
	t.must(release(ctx), "release the held Widget")
	t.gone(ctx, w.crd)
}
