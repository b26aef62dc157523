package crds

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var versionCases = []suite.Case{
	{ID: "S10/deprecated-version-warns", Level: suite.Core, Test: deprecatedVersionWarns,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, defaultDeprecationWarning",
		Promise: "A request of a deprecated version is answered with a warning, by default one that names the newest " +
			"version to use instead; other versions warn of nothing."},
	{ID: "S10/stored-version-stays", Level: suite.Core, Failure: true, Test: storedVersionCantGo,
		Source: "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go, " +
			"ValidateCustomResourceDefinitionStoredVersions",
		Promise: "A version that has been stored can't be taken out of a CRD, even when another one is stored now, " +
			"until status.storedVersions says that it is not needed any more."},
	{ID: "S10/freed-name-is-accepted", Level: suite.Core, Failure: true, Test: freedNameIsAccepted,
		Source: "k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go, " +
			"calculateNamesAndConditions",
		Promise: "A short name that another CRD of the group has is not accepted, with the reason " +
			"ShortNamesConflict, until that CRD is gone."},
	{ID: "S10/CEL-rule-says-where-and-why", Level: suite.Core, Failure: true, Test: celRuleSaysWhereAndWhy,
		Source: "KEP-2876; k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go: the reason, path " +
			"and message of a rule, and its old self",
		Promise: "A CEL rule's refusal has the field and the reason that the rule gives and the message that it " +
			"computes; with optionalOldSelf a transition rule judges creations too."},
	{ID: "S10/selectable-fields-select-watches", Level: suite.Core, Failure: true, Test: selectableFieldsSelectWatches,
		Source: "KEP-4358; k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go, GetAttrs and " +
			"selectableFields",
		Promise: "A watch by a selectable field shows an object that starts to match as ADDED and one that stops as " +
			"DELETED; deletecollection deletes what the field selects."},
}

func deprecatedVersionWarns(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(func(definition *suite.CRD) {
		old, own := suite.WidgetVersion("v1alpha1", false), suite.WidgetVersion("v1beta1", false)
		old.Deprecated, own.Deprecated = true, true
		own.DeprecationWarning = new("ask for v1, please")
		definition.Spec.Versions = append(definition.Spec.Versions, suite.WidgetVersion("v1beta2", false), old, own)
	}))
	for version, want := range map[string]string{
		"v1": "", "v1beta2": "",
		"v1alpha1": w.Resource.Group + "/v1alpha1 Widget is deprecated; use " + w.Resource.Group + "/v1 Widget",
		"v1beta1":  "ask for v1, please",
	} {
		at := t.WidgetsOf(w.CRD, version)
		t.Served(ctx, at.Path)
		header := gomega.BeEmpty()
		if want != "" {
			header = gomega.Equal(`299 - "` + want + `"`)
		}
		for _, r := range []suite.Request{
			{Path: at.Path}, {Path: at.Path + "/none"}, {Method: http.MethodDelete, Path: at.Path + "/none"},
			{Path: at.Path + "?watch=1&timeoutSeconds=1"},
		} {
			got := t.Ask(ctx, r)
			t.Expect(got.Header.Get("Warning")).To(header, "%s", got)
		}
	}
}

func storedVersionCantGo(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(func(definition *suite.CRD) {
		definition.Spec.Versions = []suite.CRDVersion{suite.WidgetVersion("v1beta1", true),
			suite.WidgetVersion("v1", false)}
	}))
	change := func(write func(context.Context, *suite.CRD, metav1.UpdateOptions) (*suite.CRD, error),
		change func(*suite.CRD)) error {
		definition := suite.Get(ctx, t, t.CRDs.Get, w.CRD.Name)
		change(definition)
		return suite.ErrorOf(write(ctx, definition, metav1.UpdateOptions{}))
	}
	onlyV1 := func(definition *suite.CRD) {
		definition.Spec.Versions = []suite.CRDVersion{suite.WidgetVersion("v1", true)}
	}
	store := func(definition *suite.CRD) {
		definition.Spec.Versions[0].Storage, definition.Spec.Versions[1].Storage = false, true
	}
	t.Expect(t.Causes(change(t.CRDs.Update, onlyV1))).To(gomega.Equal([]string{"status.storedVersions[0]"}))
	t.Expect(change(t.CRDs.Update, store)).To(gomega.Succeed(), "v1 is stored from now on")
	t.Expect(t.Causes(change(t.CRDs.Update, onlyV1))).To(gomega.Equal([]string{"status.storedVersions[0]"}))
	migrated := func(definition *suite.CRD) { definition.Status.StoredVersions = []string{"v1"} }
	t.Expect(change(t.CRDs.UpdateStatus, migrated)).To(gomega.Succeed())
	t.Expect(change(t.CRDs.Update, onlyV1)).To(gomega.Succeed())
}

func freedNameIsAccepted(ctx context.Context, t *suite.T) {
	first := t.Install(ctx, t.WidgetCRD())
	second := t.WidgetCRD(func(definition *suite.CRD) {
		definition.Name = "gadgets." + definition.Spec.Group
		definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
			Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList", ShortNames: []string{"wdg"},
		}
	})
	created := suite.Create(ctx, t, t.CRDs.Create, second)
	refused := t.CRDWith(ctx, created, apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse)
	t.Expect(suite.Condition(refused, apiextensionsv1.NamesAccepted).Reason).To(gomega.Equal("ShortNamesConflict"))
	t.Expect(refused.Status.AcceptedNames.ShortNames).To(gomega.BeEmpty())
	t.Expect(refused.Status.AcceptedNames.Plural).To(gomega.Equal("gadgets"), "what is free is accepted")
	first.RemoveCRD(ctx)
	accepted := t.CRDWith(ctx, created, apiextensionsv1.Established, apiextensionsv1.ConditionTrue)
	t.Expect(suite.Condition(accepted, apiextensionsv1.NamesAccepted).Status).
		To(gomega.Equal(apiextensionsv1.ConditionTrue))
	t.Expect(accepted.Status.AcceptedNames.ShortNames).To(gomega.Equal([]string{"wdg"}))
	t.Served(ctx, t.WidgetsOf(created, "v1").Path)
}

func celRuleSaysWhereAndWhy(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		spec.XValidations = apiextensionsv1.ValidationRules{
			{Rule: "!has(self.size) || self.size < 10", FieldPath: ".size",
				Reason:  new(apiextensionsv1.FieldValueForbidden),
				Message: "not this", MessageExpression: "self.size > 11 ? 'far too large' : 'too large'"},
			{Rule: "!has(self.color) || self.color != 'red' || oldSelf.hasValue()", OptionalOldSelf: new(true),
				Message: "red must be earned"},
		}
	})))
	_, err := w.Create(ctx, w.Object("large", suite.At(int64(12), "spec", "size")), metav1.CreateOptions{})
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec.size"}))
	cause := suite.StatusOf(err).Details.Causes[0]
	t.Expect(cause.Type).To(gomega.Equal(metav1.CauseType("FieldValueForbidden")))
	t.Expect(cause.Message).To(gomega.ContainSubstring("far too large"))
	_, err = w.Create(ctx, w.Object("red", suite.At("red", "spec", "color")), metav1.CreateOptions{})
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec"}))
	t.Expect(suite.StatusOf(err).Details.Causes[0].Type).To(gomega.Equal(metav1.CauseTypeFieldValueInvalid))
	t.Expect(err.Error()).To(gomega.ContainSubstring("red must be earned"))
	w.Make(ctx, "one", suite.At("blue", "spec", "color"))
	t.Expect(w.Merge(ctx, "one", `{"spec":{"color":"red","size":9}}`)).Error().NotTo(gomega.HaveOccurred())
}

func selectableFieldsSelectWatches(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(func(definition *suite.CRD) {
		definition.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"},
			{JSONPath: ".spec.size"}}
	}))
	w.Make(ctx, "one", suite.At("blue", "spec", "color"), suite.At(int64(1), "spec", "size"))
	w.Make(ctx, "two", suite.At("red", "spec", "color"), suite.At(int64(2), "spec", "size"))
	red := metav1.ListOptions{FieldSelector: "spec.color=red", ResourceVersion: w.MustList(ctx).GetResourceVersion()}
	events := t.Watch(ctx, w.Watch, red)
	for _, patch := range []string{`{"spec":{"size":3}}`, `{"spec":{"color":"red"}}`, `{"spec":{"size":4}}`,
		`{"spec":{"color":"blue"}}`} {
		t.Must(suite.ErrorOf(w.Merge(ctx, "one", patch)), "change Widget one")
	}
	t.Expect(suite.Brief(events.Take(ctx, 3))).To(gomega.Equal([]string{"ADDED one", "MODIFIED one", "DELETED one"}))
	numbered, err := w.List(ctx, metav1.ListOptions{FieldSelector: "spec.size=2,spec.color!=blue"})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(numbered.Items).To(gomega.ConsistOf(gomega.HaveField("GetName()", "two")))
	t.Expect(w.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.color=red"})).
		To(gomega.Succeed())
	t.Expect(suite.Brief(events.Take(ctx, 1))).To(gomega.Equal([]string{"DELETED two"}))
	t.Expect(w.MustList(ctx).Items).To(gomega.ConsistOf(gomega.HaveField("GetName()", "one")))
	t.ExpectStatus(t.Get(ctx, w.Path+"?watch=1&timeoutSeconds=1&fieldSelector=status.phase%3Dx"), suite.BadRequest)
}
