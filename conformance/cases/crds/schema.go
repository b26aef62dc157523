package crds

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
)

var schemaCases = []suite.Case{
	{ID: "S10/schema-validates", Level: suite.Core, Failure: true, Test: schemaValidates,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/validation",
		Promise: "An object that breaks its schema is refused with 422 and a cause for each broken field, and is " +
			"not stored."},
	{ID: "S10/CEL-rule-validates", Level: suite.Core, Failure: true, Test: celRuleValidates,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel",
		Promise: "A CEL rule refuses an object with its own message, and a transition rule compares with the " +
			"old object."},
	{ID: "S10/unchanged-values-are-tolerated", Level: suite.Core, Test: unchangedValuesAreTolerated,
		Source: "KEP-4008; k8s.io/apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go",
		Promise: "When a schema becomes stricter, an old value that breaks it is tolerated as long as it stays the " +
			"same, and a new one is refused."},
	{ID: "S10/defaults-are-set", Level: suite.Core, Test: defaultsAreSet,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting",
		Promise: "A default is set when an object is written; objects older than the default get it when they " +
			"are read."},
	{ID: "S10/unknown-fields-are-pruned", Level: suite.Core, Test: unknownFieldsArePruned,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning",
		Promise: "Fields that the schema does not know are dropped, except below " +
			"x-kubernetes-preserve-unknown-fields."},
	{ID: "S10/strict-validation-names-unknown-fields", Level: suite.Core, Failure: true,
		Test:    strictValidationNamesUnknownFields,
		Source:  "KEP-2885; k8s.io/apiserver/pkg/endpoints/handlers/create.go, fieldValidation",
		Promise: "fieldValidation=Strict refuses an unknown field and names it, Warn warns about it, Ignore drops it."},
	{ID: "S10/broken-CRD-is-refused", Level: suite.Core, Failure: true, Test: brokenCRDIsRefused,
		Source: "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go",
		Promise: "A CRD without a structural schema, with a name that is not PLURAL.GROUP, with a broken CEL rule or " +
			"with two storage versions is refused with 422."},
	{ID: "S10/protected-group-needs-approval", Level: suite.Core, Failure: true, Test: protectedGroupNeedsApproval,
		Source:  "k8s.io/apiextensions-apiserver/pkg/apihelpers/helpers.go, GetAPIApprovalState",
		Promise: "A CRD in a *.k8s.io group is refused without the annotation that says who approved it."},
}

func schemaValidates(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		spec.Required = []string{"color"}
		spec.Properties["size"] = suite.Schema{Type: "integer", Minimum: new(1.0)}
	})))
	for name, broken := range map[string]struct {
		settings []suite.Setting
		blamed   []string
	}{
		"wrong-type": {[]suite.Setting{suite.At("big", "spec", "size"), suite.At("red", "spec", "color")},
			[]string{"spec.size"}},
		"out-of-range": {[]suite.Setting{suite.At(int64(0), "spec", "size"), suite.At("red", "spec", "color")},
			[]string{"spec.size"}},
		"missing": {[]suite.Setting{suite.At(int64(1), "spec", "size")}, []string{"spec.color"}},
		"both":    {[]suite.Setting{suite.At(int64(0), "spec", "size")}, []string{"spec.color", "spec.size"}},
	} {
		_, err := w.Create(ctx, w.Object(name, broken.settings...), metav1.CreateOptions{})
		t.Expect(t.Causes(err)).To(gomega.Equal(broken.blamed), "%s: %v", name, err)
	}
	t.Expect(w.MustList(ctx).Items).To(gomega.BeEmpty())
	w.Make(ctx, "good", suite.At(int64(1), "spec", "size"), suite.At("red", "spec", "color"))
}

func celRuleValidates(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		spec.XValidations = apiextensionsv1.ValidationRules{
			{Rule: "!has(self.size) || self.size % 2 == 0", Message: "size must be even"},
			{Rule: "!has(oldSelf.color) || has(self.color) && self.color == oldSelf.color",
				Message: "color is for ever"},
		}
	})))
	_, err := w.TryMake(ctx, "odd", suite.At(int64(3), "spec", "size"))
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec"}))
	t.Expect(err.Error()).To(gomega.ContainSubstring("size must be even"))
	w.Make(ctx, "one", suite.At(int64(2), "spec", "size"), suite.At("red", "spec", "color"))
	_, err = w.Merge(ctx, "one", `{"spec":{"color":"blue"}}`)
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec"}))
	t.Expect(err.Error()).To(gomega.ContainSubstring("color is for ever"))
	t.Expect(w.Merge(ctx, "one", `{"spec":{"size":4}}`)).Error().NotTo(gomega.HaveOccurred())
}

// changeSchema changes the schema of spec, and waits until probe shows it in force.
func changeSchema(ctx context.Context, w *suite.Widgets, change func(spec *suite.Schema), probe func() bool) {
	t := w.T
	definition := suite.Get(ctx, t, t.CRDs.Get, w.CRD.Name)
	suite.WithSpec(change)(definition)
	// A patch, because an update would conflict with a controller that writes the status.
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": definition.Spec.Versions}})
	t.Must(err, "encode the schema")
	_, err = t.CRDs.Patch(ctx, w.CRD.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	t.Must(err, "change the schema")
	t.Eventually(ctx, probe).Should(gomega.BeTrue(), "the new schema of %s did not come into force", w.CRD.Name)
}

func unchangedValuesAreTolerated(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	w.Make(ctx, "old", suite.At(int64(100), "spec", "size"))
	changeSchema(ctx, w, func(spec *suite.Schema) {
		spec.Properties["size"] = suite.Schema{Type: "integer", Maximum: new(10.0)}
	}, func() bool {
		_, err := w.Probe(ctx, suite.At(int64(100), "spec", "size"))
		return apierrors.IsInvalid(err)
	})
	t.Expect(w.Merge(ctx, "old", `{"spec":{"color":"red"}}`)).Error().
		NotTo(gomega.HaveOccurred(), "the old size was left alone")
	_, err := w.Merge(ctx, "old", `{"spec":{"size":101}}`)
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec.size"}))
}

func defaultsAreSet(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		spec.Default = &apiextensionsv1.JSON{Raw: []byte(`{}`)}
		spec.Properties["color"] = suite.Schema{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"grey"`)}}
	})))
	before := w.Make(ctx, "before")
	t.Expect(suite.Value(before, "spec")).To(gomega.Equal(map[string]any{"color": "grey"}))
	t.Expect(suite.Value(w.Make(ctx, "own", suite.At("red", "spec", "color")), "spec", "color")).To(gomega.Equal("red"))

	changeSchema(ctx, w, func(spec *suite.Schema) {
		spec.Properties["size"] = suite.Schema{Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte(`5`)}}
	}, func() bool {
		probe, err := w.Probe(ctx)
		return err == nil && suite.Value(probe, "spec", "size") != nil
	})
	read := w.Read(ctx, "before")
	t.Expect(suite.Value(read, "spec", "size")).To(gomega.BeEquivalentTo(5))
	t.Expect(read.GetResourceVersion()).To(gomega.Equal(before.GetResourceVersion()), "reading writes nothing")
}

func unknownFieldsArePruned(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		spec.Properties["free"] = suite.Schema{Type: "object", XPreserveUnknownFields: new(true)}
	})))
	created, err := w.Create(ctx, w.Object("one", suite.At("x", "spec", "unknown"), suite.At("x", "unknown"),
		suite.At("red", "spec", "color"),
		suite.At("x", "spec", "free", "unknown"), suite.At("x", "metadata", "unknown")), metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(suite.Value(created, "spec")).
		To(gomega.Equal(map[string]any{"color": "red", "free": map[string]any{"unknown": "x"}}))
	t.Expect(suite.Value(created, "unknown")).To(gomega.BeNil())
	t.Expect(suite.Value(created, "metadata", "unknown")).To(gomega.BeNil())
	t.Expect(suite.Value(w.Read(ctx, "one"), "spec")).To(gomega.Equal(suite.Value(created, "spec")))
}

func strictValidationNamesUnknownFields(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	create := func(name, mode string) suite.Answer {
		object := w.Object(name, suite.At("x", "spec", "surprise")).Object
		return t.Ask(ctx, suite.Request{Method: http.MethodPost, Path: w.Path + "?fieldValidation=" + mode,
			Body: object})
	}
	status := t.ExpectStatus(create("strict", metav1.FieldValidationStrict), suite.BadRequest)
	t.Expect(status.Message).To(gomega.ContainSubstring(`unknown field "spec.surprise"`))
	warned := t.ExpectCode(create("warn", metav1.FieldValidationWarn), http.StatusCreated)
	t.Expect(warned.Header.Get("Warning")).To(gomega.ContainSubstring(`spec.surprise`))
	ignored := t.ExpectCode(create("ignore", metav1.FieldValidationIgnore), http.StatusCreated)
	t.Expect(ignored.Header.Get("Warning")).To(gomega.BeEmpty())
}

func brokenCRDIsRefused(ctx context.Context, t *suite.T) {
	for name, broken := range map[string]struct {
		change func(*suite.CRD)
		blamed string
	}{
		"no schema": {func(c *suite.CRD) { c.Spec.Versions[0].Schema = nil }, "openAPIV3Schema"},
		"not structural": {suite.WithSpec(func(spec *suite.Schema) { spec.Properties["size"] = suite.Schema{} }),
			"openAPIV3Schema.properties[spec].properties[size].type"},
		"wrong name": {func(c *suite.CRD) { c.Name = "gadgets." + c.Spec.Group }, "metadata.name"},
		"broken rule": {suite.WithSpec(func(spec *suite.Schema) {
			spec.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.no_such_field > 1"}}
		}), "openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"},
		"two storage versions": {func(c *suite.CRD) {
			c.Spec.Versions = append(c.Spec.Versions,
				suite.WidgetVersion("v2", true))
		}, "spec.versions"},
	} {
		_, err := t.CRDs.Create(ctx, t.WidgetCRD(broken.change), metav1.CreateOptions{})
		t.Expect(t.Causes(err)).To(gomega.ContainElement(gomega.HaveSuffix(broken.blamed)), "%s: %v", name, err)
	}
}

func protectedGroupNeedsApproval(ctx context.Context, t *suite.T) {
	protected := t.WidgetCRD(func(definition *suite.CRD) {
		definition.Spec.Group = t.Name + ".k8s.io"
		definition.Name = "widgets." + definition.Spec.Group
	})
	_, err := t.CRDs.Create(ctx, protected, metav1.CreateOptions{})
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"metadata.annotations[api-approved.kubernetes.io]"}))
	protected.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, a conformance case"}
	created, err := t.CRDs.Create(ctx, protected, metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	seen := t.CRDUntil(ctx, created, func(seen *suite.CRD) bool {
		return suite.Condition(seen, apiextensionsv1.KubernetesAPIApprovalPolicyConformant).Status != ""
	})
	t.Expect(suite.Condition(seen, apiextensionsv1.KubernetesAPIApprovalPolicyConformant).Status).
		To(gomega.Equal(apiextensionsv1.ConditionFalse))
}
