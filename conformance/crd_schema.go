package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var schemaCases = []Case{
	{ID: "S10/schema-validates", Test: schemaValidates,
		Promise: "An object that breaks its schema is refused with 422 and a cause for each broken field, and is not stored."},
	{ID: "S10/CEL-rule-validates", Test: celRuleValidates,
		Promise: "A CEL rule refuses an object with its own message, and a transition rule compares with the old object."},
	{ID: "S10/unchanged-values-are-tolerated", Test: unchangedValuesAreTolerated,
		Promise: "When a schema becomes stricter, an old value that breaks it is tolerated as long as it stays the same, and a new one is refused."},
	{ID: "S10/defaults-are-set", Test: defaultsAreSet,
		Promise: "A default is set when an object is written; objects older than the default get it when they are read."},
	{ID: "S10/unknown-fields-are-pruned", Test: unknownFieldsArePruned,
		Promise: "Fields that the schema does not know are dropped, except below x-kubernetes-preserve-unknown-fields."},
	{ID: "S10/strict-validation-names-unknown-fields", Test: strictValidationNamesUnknownFields,
		Promise: "fieldValidation=Strict refuses an unknown field and names it, Warn warns about it, Ignore drops it."},
	{ID: "S10/broken-CRD-is-refused", Test: brokenCRDIsRefused,
		Promise: "A CRD without a structural schema, with a name that is not PLURAL.GROUP, with a broken CEL rule or with two storage versions is refused with 422."},
	{ID: "S10/protected-group-needs-approval", Test: protectedGroupNeedsApproval,
		Promise: "A CRD in a *.k8s.io group is refused without the annotation that says who approved it."},
}

// causes returns the fields that a 422 answer names as causes.
func (t *Target) causes(err error) []string {
	t.Expect(err).To(beStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid))
	var fields []string
	if details := statusOf(err).Details; details != nil {
		for _, cause := range details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// k8s.io/apiextensions-apiserver/pkg/apiserver/validation.
func schemaValidates(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(withSpec(func(spec *schemaOf) {
		spec.Required = []string{"color"}
		spec.Properties["size"] = schemaOf{Type: "integer", Minimum: new(1.0)}
	})))
	for name, broken := range map[string]struct {
		settings []setting
		blamed   []string
	}{
		"wrong-type":   {[]setting{at("big", "spec", "size"), at("red", "spec", "color")}, []string{"spec.size"}},
		"out-of-range": {[]setting{at(int64(0), "spec", "size"), at("red", "spec", "color")}, []string{"spec.size"}},
		"missing":      {[]setting{at(int64(1), "spec", "size")}, []string{"spec.color"}},
		"both":         {[]setting{at(int64(0), "spec", "size")}, []string{"spec.color", "spec.size"}},
	} {
		_, err := w.Create(ctx, w.object(name, broken.settings...), metav1.CreateOptions{})
		t.Expect(t.causes(err)).To(gomega.Equal(broken.blamed), "%s: %v", name, err)
	}
	t.Expect(w.list(ctx).Items).To(gomega.BeEmpty())
	w.make(ctx, "good", at(int64(1), "spec", "size"), at("red", "spec", "color"))
}

// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel.
func celRuleValidates(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(withSpec(func(spec *schemaOf) {
		spec.XValidations = apiextensionsv1.ValidationRules{
			{Rule: "!has(self.size) || self.size % 2 == 0", Message: "size must be even"},
			{Rule: "!has(oldSelf.color) || has(self.color) && self.color == oldSelf.color", Message: "color is for ever"},
		}
	})))
	_, err := w.apply(ctx, "odd", at(int64(3), "spec", "size"))
	t.Expect(t.causes(err)).To(gomega.Equal([]string{"spec"}))
	t.Expect(err.Error()).To(gomega.ContainSubstring("size must be even"))
	w.make(ctx, "one", at(int64(2), "spec", "size"), at("red", "spec", "color"))
	_, err = w.merge(ctx, "one", `{"spec":{"color":"blue"}}`)
	t.Expect(t.causes(err)).To(gomega.Equal([]string{"spec"}))
	t.Expect(err.Error()).To(gomega.ContainSubstring("color is for ever"))
	t.Expect(w.merge(ctx, "one", `{"spec":{"size":4}}`)).Error().NotTo(gomega.HaveOccurred())
}

// changeSchema changes the schema of spec, and waits until probe shows it in force.
func (w *widgets) changeSchema(ctx context.Context, change func(spec *schemaOf), probe func() bool) {
	t := w.target
	definition, err := t.crds.Get(ctx, w.crd.Name, metav1.GetOptions{})
	t.must(err, "get the CRD")
	withSpec(change)(definition)
	// A patch, because a controller writes the status meanwhile.
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": definition.Spec.Versions}})
	t.must(err, "encode the schema")
	_, err = t.crds.Patch(ctx, w.crd.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	t.must(err, "change the schema")
	t.Eventually(ctx, probe).Should(gomega.BeTrue(), "the new schema of %s did not come into force", w.crd.Name)
}

// k8s.io/apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go: KEP-4008.
func unchangedValuesAreTolerated(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	w.make(ctx, "old", at(int64(100), "spec", "size"))
	w.changeSchema(ctx, func(spec *schemaOf) { spec.Properties["size"] = schemaOf{Type: "integer", Maximum: new(10.0)} }, func() bool {
		_, err := w.probe(ctx, at(int64(100), "spec", "size"))
		return apierrors.IsInvalid(err)
	})
	t.Expect(w.merge(ctx, "old", `{"spec":{"color":"red"}}`)).Error().NotTo(gomega.HaveOccurred(), "the old size was left alone")
	_, err := w.merge(ctx, "old", `{"spec":{"size":101}}`)
	t.Expect(t.causes(err)).To(gomega.Equal([]string{"spec.size"}))
}

// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting.
func defaultsAreSet(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(withSpec(func(spec *schemaOf) {
		spec.Default = &apiextensionsv1.JSON{Raw: []byte(`{}`)}
		spec.Properties["color"] = schemaOf{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"grey"`)}}
	})))
	before := w.make(ctx, "before")
	t.Expect(value(before, "spec")).To(gomega.Equal(map[string]any{"color": "grey"}))
	t.Expect(value(w.make(ctx, "own", at("red", "spec", "color")), "spec", "color")).To(gomega.Equal("red"))

	w.changeSchema(ctx, func(spec *schemaOf) {
		spec.Properties["size"] = schemaOf{Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte(`5`)}}
	}, func() bool {
		probe, err := w.probe(ctx)
		return err == nil && value(probe, "spec", "size") != nil
	})
	read := w.read(ctx, "before")
	t.Expect(value(read, "spec", "size")).To(gomega.BeEquivalentTo(5))
	t.Expect(read.GetResourceVersion()).To(gomega.Equal(before.GetResourceVersion()), "reading writes nothing")
}

// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning.
func unknownFieldsArePruned(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(withSpec(func(spec *schemaOf) {
		spec.Properties["free"] = schemaOf{Type: "object", XPreserveUnknownFields: new(true)}
	})))
	created, err := w.Create(ctx, w.object("one", at("x", "spec", "unknown"), at("x", "unknown"), at("red", "spec", "color"),
		at("x", "spec", "free", "unknown"), at("x", "metadata", "unknown")), metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(value(created, "spec")).To(gomega.Equal(map[string]any{"color": "red", "free": map[string]any{"unknown": "x"}}))
	t.Expect(value(created, "unknown")).To(gomega.BeNil())
	t.Expect(value(created, "metadata", "unknown")).To(gomega.BeNil())
	t.Expect(value(w.read(ctx, "one"), "spec")).To(gomega.Equal(value(created, "spec")))
}

// k8s.io/apiserver/pkg/endpoints/handlers/create.go, fieldValidation: KEP-2885.
func strictValidationNamesUnknownFields(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	create := func(name, mode string) answer {
		object := w.object(name, at("x", "spec", "surprise")).Object
		return t.ask(ctx, request{method: http.MethodPost, path: w.path + "?fieldValidation=" + mode, body: object})
	}
	refused := create("strict", metav1.FieldValidationStrict)
	status := t.expectStatus(refused, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	t.Expect(status.Message).To(gomega.ContainSubstring(`unknown field "spec.surprise"`))
	warned := create("warn", metav1.FieldValidationWarn)
	t.Expect(warned.code).To(gomega.Equal(http.StatusCreated), "%s", warned)
	t.Expect(warned.header.Get("Warning")).To(gomega.ContainSubstring(`spec.surprise`))
	ignored := create("ignore", metav1.FieldValidationIgnore)
	t.Expect(ignored.code).To(gomega.Equal(http.StatusCreated), "%s", ignored)
	t.Expect(ignored.header.Get("Warning")).To(gomega.BeEmpty())
}

// k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
func brokenCRDIsRefused(ctx context.Context, t *Target) {
	for name, broken := range map[string]struct {
		change func(*crd)
		blamed string
	}{
		"no schema": {func(c *crd) { c.Spec.Versions[0].Schema = nil }, "openAPIV3Schema"},
		"not structural": {withSpec(func(spec *schemaOf) { spec.Properties["size"] = schemaOf{} }),
			"openAPIV3Schema.properties[spec].properties[size].type"},
		"wrong name": {func(c *crd) { c.Name = "gadgets." + c.Spec.Group }, "metadata.name"},
		"broken rule": {withSpec(func(spec *schemaOf) {
			spec.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.no_such_field > 1"}}
		}), "openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"},
		"two storage versions": {func(c *crd) { c.Spec.Versions = append(c.Spec.Versions, widgetVersion("v2", true)) }, "spec.versions"},
	} {
		_, err := t.create(ctx, t.widgetCRD(broken.change))
		t.Expect(t.causes(err)).To(gomega.ContainElement(gomega.HaveSuffix(broken.blamed)), "%s: %v", name, err)
	}
}

// k8s.io/apiextensions-apiserver/pkg/apihelpers/helpers.go, GetAPIApprovalState.
func protectedGroupNeedsApproval(ctx context.Context, t *Target) {
	protected := t.widgetCRD(func(definition *crd) {
		definition.Spec.Group = t.Name + ".k8s.io"
		definition.Name = "widgets." + definition.Spec.Group
	})
	_, err := t.create(ctx, protected)
	t.Expect(t.causes(err)).To(gomega.Equal([]string{"metadata.annotations[api-approved.kubernetes.io]"}))
	protected.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, a conformance case"}
	created, err := t.create(ctx, protected)
	t.Expect(err).NotTo(gomega.HaveOccurred())
	seen := t.crdUntil(ctx, created, func(seen *crd) bool {
		return condition(seen, apiextensionsv1.KubernetesAPIApprovalPolicyConformant).Status != ""
	})
	t.Expect(condition(seen, apiextensionsv1.KubernetesAPIApprovalPolicyConformant).Status).To(gomega.Equal(apiextensionsv1.ConditionFalse))
}
