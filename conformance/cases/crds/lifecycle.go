// Package crds has the cases about custom resources and their definitions. Each case has a
// definition of its own, in a group of its own, and waits for what the definition's conditions say.
package crds

import (
	"context"
	"net/http"
	"slices"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
)

// Cases are the cases of this area.
var Cases = slices.Concat(lifecycleCases, schemaCases, expressionCases, listCases, versionCases, conversionCases)

var lifecycleCases = []suite.Case{
	{ID: "S10/crd-is-established", Level: suite.Core, Test: crdIsEstablished,
		Source: "k8s.io/apiextensions-apiserver/pkg/controller/{status,establish}",
		Promise: "A CRD whose names are free becomes NamesAccepted and Established; its status has the accepted " +
			"names and the storage version."},
	{ID: "S10/custom-resource-is-an-object", Level: suite.Core, Test: customResourceIsAnObject,
		Source: "k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go",
		Promise: "A custom resource is created, read, updated and deleted like any object: uid, creation time, and a " +
			"generation that counts changes of spec."},
	{ID: "S10/name-conflict-is-refused", Level: suite.Core, Failure: true, Test: nameConflictIsRefused,
		Source: "k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go",
		Promise: "A second CRD of a group with a kind or short name that is taken gets a condition that says so, and " +
			"is neither established nor served."},
	{ID: "S10/versions-share-their-objects", Level: suite.Core, Test: versionsShareTheirObjects,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go",
		Promise: "With conversion None, an object is available in every served version and only its apiVersion " +
			"differs; other versions are 404."},
	{ID: "S10/stored-versions-are-remembered", Level: suite.Core, Test: storedVersionsAreRemembered,
		Source:  "k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go",
		Promise: "When another version becomes the storage version, status.storedVersions keeps both."},
	{ID: "S10/status-is-a-subresource", Level: suite.Core, Test: statusIsASubresource,
		Source: "k8s.io/apiextensions-apiserver/pkg/registry/customresource/status_strategy.go",
		Promise: "With the status subresource, a write to the object leaves status alone, a write to status leaves " +
			"the rest alone, and only the first increases the generation."},
	{ID: "S10/scale-is-a-subresource", Level: suite.Core, Test: scaleIsASubresource,
		Source:  "k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go, ScaleREST",
		Promise: "The scale subresource reads and writes the fields the CRD names, as an autoscaling/v1 Scale."},
	{ID: "S10/printer-columns-make-a-table", Level: suite.Core, Test: printerColumnsMakeATable,
		Source:  "k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor",
		Promise: "additionalPrinterColumns are the columns of a Table, after the name."},
	{ID: "S10/selectable-fields-select", Level: suite.Core, Test: selectableFieldsSelect,
		Source:  "KEP-4358; k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go, selectableFieldSet",
		Promise: "A field that the CRD declares selectable can be used in a field selector; another field can't."},
	{ID: "S10/deleting-a-CRD-deletes-its-objects", Level: suite.Core, Test: deletingACRDDeletesItsObjects,
		Source: "k8s.io/apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go",
		Promise: "Deleting a CRD deletes its objects, which watchers see, and then the CRD; its path is then 404, " +
			"and a new CRD of the same name starts empty."},
	{ID: "S10/terminating-CRD-waits-for-its-objects", Level: suite.Core, Failure: true,
		Test: terminatingCRDWaitsForItsObjects,
		Source: "k8s.io/apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go and " +
			"pkg/apiserver/customresource_handler.go, crdHandler.serveResource",
		Promise: "A deleted CRD stays Terminating while a finalizer keeps one of its objects, and admits no new " +
			"objects."},
}

func crdIsEstablished(ctx context.Context, t *suite.T) {
	definition := t.WidgetCRD()
	definition.Spec.Names.Singular, definition.Spec.Names.ListKind = "", "" // are defaulted
	created := suite.Create(ctx, t, t.CRDs.Create, definition)
	seen := t.CRDWith(ctx, created, apiextensionsv1.Established, apiextensionsv1.ConditionTrue)
	t.Expect(suite.Condition(seen, apiextensionsv1.NamesAccepted).Status).
		To(gomega.Equal(apiextensionsv1.ConditionTrue))
	t.Expect(suite.Condition(seen, apiextensionsv1.Terminating).Status).
		NotTo(gomega.Equal(apiextensionsv1.ConditionTrue))
	t.Expect(seen.Status.AcceptedNames).To(gomega.Equal(apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
		ShortNames: []string{"wdg"}, Categories: []string{"all"},
	}))
	t.Expect(seen.Status.StoredVersions).To(gomega.Equal([]string{"v1"}))
	t.Served(ctx, "/apis/"+seen.Spec.Group+"/v1/widgets")
}

func customResourceIsAnObject(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	created, err := w.Create(ctx, w.Object("one", suite.At(int64(1), "spec", "size")), metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(created.GetUID()).NotTo(gomega.BeEmpty())
	t.Expect(created.GetCreationTimestamp().Time.IsZero()).To(gomega.BeFalse())
	t.Expect(created.GetGeneration()).To(gomega.BeEquivalentTo(1))
	t.Expect(w.Read(ctx, "one")).To(gomega.Equal(created))

	labelled := created.DeepCopy()
	labelled.SetLabels(map[string]string{"a": "b"})
	labelled, err = w.Update(ctx, labelled, metav1.UpdateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(labelled.GetGeneration()).To(gomega.BeEquivalentTo(1), "changing metadata must not change the generation")
	t.Expect(t.Number(labelled.GetResourceVersion())).
		To(gomega.BeNumerically(">", t.Number(created.GetResourceVersion())))

	patched, err := w.Merge(ctx, "one", `{"spec":{"size":2}}`)
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(patched.GetGeneration()).To(gomega.BeEquivalentTo(2))
	t.Expect(patched.GetUID()).To(gomega.Equal(created.GetUID()))
	t.Expect(suite.Value(patched, "spec", "size")).To(gomega.BeEquivalentTo(2))

	t.Expect(w.Delete(ctx, "one", metav1.DeleteOptions{})).To(gomega.Succeed())
	t.Expect(w.Get(ctx, "one", metav1.GetOptions{})).Error().To(suite.BeStatus(suite.NotFound))
}

func nameConflictIsRefused(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	for plural, want := range map[string]struct {
		names  apiextensionsv1.CustomResourceDefinitionNames
		reason string
	}{
		"gadgets": {apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", ListKind: "GadgetList"},
			"KindConflict"},
		"gizmos": {apiextensionsv1.CustomResourceDefinitionNames{Kind: "Gizmo", ShortNames: []string{"wdg"}},
			"ShortNamesConflict"},
	} {
		rival := t.WidgetCRD()
		rival.Name = plural + "." + w.Resource.Group
		rival.Spec.Names = want.names
		rival.Spec.Names.Plural = plural
		created := suite.Create(ctx, t, t.CRDs.Create, rival)
		seen := t.CRDWith(ctx, created, apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse)
		t.Expect(suite.Condition(seen, apiextensionsv1.NamesAccepted).Reason).To(gomega.Equal(want.reason), rival.Name)
		t.Expect(suite.Condition(seen, apiextensionsv1.Established).Status).
			To(gomega.Equal(apiextensionsv1.ConditionFalse), rival.Name)
		t.Answered(ctx, "/apis/"+w.Resource.Group+"/v1/"+plural, http.StatusNotFound)
	}
	t.Expect(t.Get(ctx, w.Path).Code).To(gomega.Equal(http.StatusOK), "the first CRD keeps its names")
}

func versionsShareTheirObjects(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(func(definition *suite.CRD) {
		unserved := suite.WidgetVersion("v1alpha1", false)
		unserved.Served = false
		definition.Spec.Versions = []suite.CRDVersion{suite.WidgetVersion("v1", true),
			suite.WidgetVersion("v1beta1", false), unserved}
	}))
	old, gone := t.WidgetsOf(w.CRD, "v1beta1"), t.WidgetsOf(w.CRD, "v1alpha1")
	created := old.Make(ctx, "one", suite.At("red", "spec", "color"))
	t.Expect(created.GetAPIVersion()).To(gomega.Equal(old.Resource.GroupVersion().String()))
	read := w.Read(ctx, "one")
	t.Expect(read.GetAPIVersion()).To(gomega.Equal(w.Resource.GroupVersion().String()))
	read.SetAPIVersion(created.GetAPIVersion())
	read.SetManagedFields(nil)
	created.SetManagedFields(nil)
	t.Expect(read.Object).To(gomega.Equal(created.Object))

	events := t.Watch(ctx, w.Watch, metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	t.Expect(old.Merge(ctx, "one", `{"spec":{"color":"blue"}}`)).Error().NotTo(gomega.HaveOccurred())
	changed := events.Next(ctx).Object.GetObjectKind().GroupVersionKind()
	t.Expect(changed.GroupVersion()).To(gomega.Equal(w.Resource.GroupVersion()))
	t.Expect(suite.Value(w.Read(ctx, "one"), "spec", "color")).To(gomega.Equal("blue"))
	t.Answered(ctx, gone.Path, http.StatusNotFound)
}

func storedVersionsAreRemembered(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(func(definition *suite.CRD) {
		definition.Spec.Versions = []suite.CRDVersion{suite.WidgetVersion("v1beta1", true),
			suite.WidgetVersion("v1", false)}
	}))
	w.Make(ctx, "one", suite.At(int64(3), "spec", "size"))
	patch := `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace",` +
		`"path":"/spec/versions/1/storage","value":true}]`
	patched, err := t.CRDs.Patch(ctx, w.CRD.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	t.Must(err, "make v1 the storage version")
	t.Expect(patched.Status.StoredVersions).To(gomega.ConsistOf("v1beta1", "v1"))
	t.Expect(suite.Value(t.WidgetsOf(w.CRD, "v1").Read(ctx, "one"), "spec", "size")).To(gomega.BeEquivalentTo(3))
}

func statusIsASubresource(ctx context.Context, t *suite.T) {
	status := apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	w := t.Install(ctx, t.WidgetCRD(suite.WithSubresources(status)))
	one, err := w.Create(ctx, w.Object("one", suite.At(int64(1), "spec", "size"), suite.At("Ready", "status", "phase")),
		metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(suite.Value(one, "status")).To(gomega.BeNil(), "status is not set by create")

	t.Set(one, suite.At("Ready", "status", "phase"))
	t.Set(one, suite.At(int64(7), "spec", "size"))
	one.SetLabels(map[string]string{"by": "status"})
	one, err = w.UpdateStatus(ctx, one, metav1.UpdateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(suite.Value(one, "status", "phase")).To(gomega.Equal("Ready"))
	t.Expect(suite.Value(one, "spec", "size")).To(gomega.BeEquivalentTo(1), "spec is not set through status")
	t.Expect(one.GetLabels()).To(gomega.BeEmpty(), "labels are not set through status")
	t.Expect(one.GetGeneration()).To(gomega.BeEquivalentTo(1))

	t.Set(one, suite.At("Broken", "status", "phase"))
	t.Set(one, suite.At(int64(2), "spec", "size"))
	one, err = w.Update(ctx, one, metav1.UpdateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(suite.Value(one, "status", "phase")).To(gomega.Equal("Ready"), "status is not set by update")
	t.Expect(suite.Value(one, "spec", "size")).To(gomega.BeEquivalentTo(2))
	t.Expect(one.GetGeneration()).To(gomega.BeEquivalentTo(2))
}

func scaleIsASubresource(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSubresources(apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		Scale: &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size",
			LabelSelectorPath: new(".status.selector"),
		},
	}), func(definition *suite.CRD) {
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = suite.Schema{Type: "object",
			Properties: map[string]suite.Schema{
				"size": {Type: "integer"}, "selector": {Type: "string"},
			}}
	}))
	one := w.Make(ctx, "one", suite.At(int64(3), "spec", "size"))
	t.Set(one, suite.At(map[string]any{"size": int64(2), "selector": "a=b"}, "status"))
	t.Must(suite.ErrorOf(w.UpdateStatus(ctx, one, metav1.UpdateOptions{})), "write status")

	scale, err := w.Get(ctx, "one", metav1.GetOptions{}, "scale")
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(scale.GetAPIVersion() + " " + scale.GetKind()).To(gomega.Equal("autoscaling/v1 Scale"))
	t.Expect(suite.Value(scale, "spec", "replicas")).To(gomega.BeEquivalentTo(3))
	t.Expect(suite.Value(scale, "status", "replicas")).To(gomega.BeEquivalentTo(2))
	t.Expect(suite.Value(scale, "status", "selector")).To(gomega.Equal("a=b"))

	t.Set(scale, suite.At(int64(5), "spec", "replicas"))
	t.Expect(w.Update(ctx, scale, metav1.UpdateOptions{}, "scale")).Error().NotTo(gomega.HaveOccurred())
	one = w.Read(ctx, "one")
	t.Expect(suite.Value(one, "spec", "size")).To(gomega.BeEquivalentTo(5))
	t.Expect(suite.Value(one, "status", "size")).To(gomega.BeEquivalentTo(2))
}

func printerColumnsMakeATable(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(func(definition *suite.CRD) {
		definition.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Size", Type: "integer", JSONPath: ".spec.size"},
			{Name: "Color", Type: "string", JSONPath: ".spec.color"},
		}
	}))
	w.Make(ctx, "one", suite.At(int64(3), "spec", "size"), suite.At("red", "spec", "color"))
	w.Make(ctx, "two", suite.At(int64(4), "spec", "size"))
	found := suite.JSON[metav1.Table](t, t.Ask(ctx, suite.Request{Path: w.Path, Accept: suite.TableType}))
	t.Expect(found.Kind).To(gomega.Equal("Table"))
	column := func(name, kind string) gomega.OmegaMatcher {
		return gomega.And(gomega.HaveField("Name", name), gomega.HaveField("Type", kind))
	}
	t.Expect(found.ColumnDefinitions).To(gomega.HaveExactElements(column("Name", "string"), column("Size", "integer"),
		column("Color", "string")))
	t.Expect(found.Rows).To(gomega.HaveLen(2))
	t.Expect(found.Rows[0].Cells).To(gomega.Equal([]any{"one", 3.0, "red"}))
	t.Expect(found.Rows[1].Cells).To(gomega.Equal([]any{"two", 4.0, nil}))
}

func selectableFieldsSelect(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(func(definition *suite.CRD) {
		definition.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}}
	}))
	w.Make(ctx, "one", suite.At("red", "spec", "color"))
	w.Make(ctx, "two", suite.At("blue", "spec", "color"))
	list, err := w.List(ctx, metav1.ListOptions{FieldSelector: "spec.color=blue"})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(list.Items).To(gomega.HaveLen(1))
	t.Expect(list.Items[0].GetName()).To(gomega.Equal("two"))
	t.Expect(w.List(ctx, metav1.ListOptions{FieldSelector: "spec.size=1"})).Error().To(suite.BeStatus(suite.BadRequest))
}

// gone waits until a definition does not exist any more.
func gone(ctx context.Context, t *suite.T, definition *suite.CRD) {
	t.Eventually(ctx, func() error { return suite.ErrorOf(t.CRDs.Get(ctx, definition.Name, metav1.GetOptions{})) }).
		Should(suite.BeStatus(suite.NotFound), "CRD %s still exists", definition.Name)
}

func deletingACRDDeletesItsObjects(ctx context.Context, t *suite.T) {
	definition := t.WidgetCRD()
	w := t.Install(ctx, definition.DeepCopy())
	t.Expect(w.CRD.Finalizers).To(gomega.BeEmpty(), "the finalizer is added by the deletion")
	w.Make(ctx, "one")
	w.Make(ctx, "two")
	events := t.Watch(ctx, w.Watch, metav1.ListOptions{ResourceVersion: w.MustList(ctx).GetResourceVersion()})
	w.RemoveCRD(ctx)
	t.Expect(suite.Brief(events.Take(ctx, 2))).To(gomega.ConsistOf("DELETED one", "DELETED two"))
	gone(ctx, t, w.CRD)
	t.Until(ctx, w.Path, http.StatusNotFound)

	t.Expect(t.Install(ctx, definition).MustList(ctx).Items).To(gomega.BeEmpty())
}

func terminatingCRDWaitsForItsObjects(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	w.Make(ctx, "held", suite.At([]any{"conformance.snowglobe.test/hold"}, "metadata", "finalizers"))
	w.RemoveCRD(ctx)
	seen := t.CRDWith(ctx, w.CRD, apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue)
	t.Expect(seen.DeletionTimestamp).NotTo(gomega.BeNil())
	t.Expect(seen.Finalizers).To(gomega.ContainElement(apiextensionsv1.CustomResourceCleanupFinalizer))
	t.Eventually(ctx, func() error { return suite.ErrorOf(w.Probe(ctx)) }).Should(suite.BeStatus(suite.Forbidden),
		"a terminating CRD admits new objects")
	t.Eventually(ctx, func() *metav1.Time { return w.Read(ctx, "held").GetDeletionTimestamp() }).
		ShouldNot(gomega.BeNil())
	t.Must(suite.ErrorOf(w.Merge(ctx, "held", `{"metadata":{"finalizers":null}}`)), "release the held Widget")
	gone(ctx, t, w.CRD)
}
