package crds

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
)

var listCases = []suite.Case{
	{ID: "S10/unknown-fields-in-lists-are-pruned", Level: suite.Core, Test: unknownFieldsInListsArePruned,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go, prune: items and " +
			"additionalProperties",
		Promise: "Fields that the schema does not know are dropped inside list items and map values too, however " +
			"deep, by creates, updates and patches."},
	{ID: "S10/strict-validation-of-every-write", Level: suite.Core, Failure: true, Test: strictValidationOfEveryWrite,
		Source: "KEP-2885; k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, " +
			"schemaCoercingDecoder; k8s.io/apiserver/pkg/endpoints/handlers/update.go and patch.go",
		Promise: "fieldValidation=Strict refuses what a custom resource's schema does not know in updates and " +
			"patches too, and names it inside a list item."},
	{ID: "S10/list-keys-are-unique", Level: suite.Core, Failure: true, Test: listKeysAreUnique,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go",
		Promise: "Two items with the same keys in a list of type map, or equal ones in a set, are refused with 422 " +
			"that names the second; an atomic list may repeat."},
	{ID: "S10/null-is-kept-or-defaulted", Level: suite.Core, Failure: true, Test: nullIsKeptOrDefaulted,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/prunenulls.go",
		Promise: "null stays where the schema says nullable, becomes the default where there is one, and drops any " +
			"other field; as an item of a list it is refused with 422."},
	{ID: "S10/unchanged-items-are-tolerated", Level: suite.Core, Failure: true, Test: unchangedItemsAreTolerated,
		Source: "KEP-4008; k8s.io/apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go, ValidateUpdate: " +
			"correlated items; pkg/apiserver/schema/cel/validation.go",
		Promise: "When a schema or a rule becomes stricter, old items of a keyed list are tolerated while others " +
			"change, even if they move; a changed or added one is refused, and an atomic list is judged whole."},
}

// item is the schema of list items that have a name, and a size with the given schema.
func item(size suite.Schema) *apiextensionsv1.JSONSchemaPropsOrArray {
	return &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &suite.Schema{
		Type: "object", Required: []string{"name"},
		Properties: map[string]suite.Schema{"name": {Type: "string"}, "size": size},
	}}
}

// parts sets the items of a list in spec. The items are names and sizes in turn: "a", 1, "b", 2.
func parts(list string, items ...any) suite.Setting {
	var values []any
	for i := 0; i < len(items); i += 2 {
		values = append(values, map[string]any{"name": items[i], "size": int64(items[i+1].(int))})
	}
	return suite.At(values, "spec", list)
}

func unknownFieldsInListsArePruned(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		inner := item(suite.Schema{Type: "integer"})
		inner.Schema.Properties["parts"] = suite.Schema{Type: "array", Items: item(suite.Schema{Type: "integer"})}
		spec.Properties["parts"] = suite.Schema{Type: "array", Items: inner}
		spec.Properties["byName"] = suite.Schema{Type: "object",
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
				Allows: true, Schema: &suite.Schema{Type: "object",
					Properties: map[string]suite.Schema{"size": {Type: "integer"}}},
			}}
	})))
	known := map[string]any{
		"parts":  []any{map[string]any{"name": "a", "parts": []any{map[string]any{"name": "b"}}}},
		"byName": map[string]any{"a": map[string]any{"size": int64(1)}},
	}
	const dirty = `{"parts":[{"name":"a","x":1,"parts":[{"name":"b","x":{"y":1}}]}],"byName":{"a":{"size":1,"x":1}}}`
	send := func(method, path, media, body string) {
		got := t.Ask(ctx, suite.Request{Method: method, Path: path, Body: []byte(body),
			Header: map[string]string{"Content-Type": media}})
		t.Expect(got.Code).To(gomega.BeElementOf(http.StatusOK, http.StatusCreated), "%s", got)
		t.Expect(string(got.Body)).NotTo(gomega.ContainSubstring(`"x":`), "%s", got)
		t.Expect(suite.Value(w.Read(ctx, "one"), "spec")).To(gomega.Equal(known), "after %s %s", method, media)
	}
	whole := `{"apiVersion":"` + w.Resource.GroupVersion().
		String() + `","kind":"Widget","metadata":{"name":"one"},"spec":` + dirty + `}`
	send(http.MethodPost, w.Path, "application/json", whole)
	one := w.Path + "/one"
	send(http.MethodPatch, one, string(types.MergePatchType), `{"spec":`+dirty+`}`)
	send(http.MethodPatch, one, string(types.JSONPatchType), `[{"op":"add","path":"/spec/parts/0/x","value":1}]`)
	version := w.Read(ctx, "one").GetResourceVersion()
	send(http.MethodPut, one, "application/json", `{"apiVersion":"`+w.Resource.GroupVersion().String()+
		`","kind":"Widget","metadata":{"name":"one","resourceVersion":"`+version+`"},"spec":`+dirty+`}`)
}

func strictValidationOfEveryWrite(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		spec.Properties["parts"] = suite.Schema{Type: "array", Items: item(suite.Schema{Type: "integer"})}
	})))
	before := w.Make(ctx, "one", parts("parts", "a", 1))
	const dirty = `{"parts":[{"name":"a","size":1},{"name":"b","surprise":1}]}`
	whole := `{"apiVersion":"` + w.Resource.GroupVersion().
		String() + `","kind":"Widget","metadata":{"name":"one","resourceVersion":"` +
		before.GetResourceVersion() + `"},"spec":` + dirty + `}`
	for _, c := range []struct {
		method, media, body string
		code                int
	}{
		{http.MethodPut, "application/json", whole, http.StatusBadRequest},
		{http.MethodPatch, string(types.MergePatchType), `{"spec":` + dirty + `}`, http.StatusUnprocessableEntity},
		{http.MethodPatch, string(types.JSONPatchType),
			`[{"op":"add","path":"/spec/parts/1","value":{"name":"b","surprise":1}}]`, http.StatusUnprocessableEntity},
	} {
		ask := func(query string) suite.Answer {
			return t.Ask(ctx, suite.Request{Method: c.method, Path: w.Path + "/one?" + query, Body: []byte(c.body),
				Header: map[string]string{"Content-Type": c.media}})
		}
		got := t.ExpectCode(ask("fieldValidation=Strict"), c.code)
		t.Expect(string(got.Body)).To(gomega.ContainSubstring(`unknown field \"spec.parts[1].surprise\"`), "%s", got)
		t.Expect(w.Read(ctx, "one")).To(gomega.Equal(before), "after what was refused")
		warned := t.ExpectCode(ask("fieldValidation=Warn&dryRun=All"), http.StatusOK)
		t.Expect(warned.Header.Get("Warning")).To(gomega.ContainSubstring("spec.parts[1].surprise"), "%s", warned)
	}
}

func listKeysAreUnique(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		keyed := suite.Schema{Type: "array", Items: item(suite.Schema{Type: "integer"}), XListType: new("map"),
			XListMapKeys: []string{"name"}}
		spec.Properties["keyed"] = keyed
		spec.Properties["loose"] = suite.Schema{Type: "array", Items: keyed.Items, XListType: new("atomic")}
		spec.Properties["set"] = suite.Schema{Type: "array", XListType: new("set"),
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &suite.Schema{Type: "string"}}}
	})))
	for _, c := range []struct {
		setting suite.Setting
		blamed  string
	}{
		{parts("keyed", "a", 1, "b", 2, "a", 3), "spec.keyed[2]"},
		{suite.At([]any{"x", "y", "y"}, "spec", "set"), "spec.set[2]"},
	} {
		_, err := w.Create(ctx, w.Object("refused", c.setting), metav1.CreateOptions{})
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{c.blamed}), "%v", err)
		t.Expect(suite.StatusOf(err).Details.Causes[0].Type).To(gomega.Equal(metav1.CauseTypeFieldValueDuplicate), "%v",
			err)
	}
	made, err := w.Create(ctx, w.Object("one", parts("keyed", "a", 1, "b", 1), parts("loose", "a", 1, "a", 1),
		suite.At([]any{"x", "y"}, "spec", "set")), metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(suite.Value(made, "spec", "loose")).To(gomega.HaveLen(2))
	_, err = w.Merge(ctx, "one", `{"spec":{"keyed":[{"name":"b"},{"name":"b"}]}}`)
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec.keyed[1]"}), "%v", err)
}

func nullIsKeptOrDefaulted(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		grey := &apiextensionsv1.JSON{Raw: []byte(`"grey"`)}
		spec.Properties["nullable"] = suite.Schema{Type: "string", Nullable: true}
		spec.Properties["both"] = suite.Schema{Type: "string", Nullable: true, Default: grey}
		spec.Properties["defaulted"] = suite.Schema{Type: "string", Default: grey}
		spec.Properties["list"] = suite.Schema{Type: "array",
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &suite.Schema{Type: "string"}}}
	})))
	made, err := w.Create(ctx, w.Object("one", suite.At(nil, "spec", "nullable"), suite.At(nil, "spec", "both"),
		suite.At(nil, "spec", "defaulted"), suite.At(nil, "spec", "color")), metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(suite.Value(made, "spec")).
		To(gomega.Equal(map[string]any{"nullable": nil, "both": nil, "defaulted": "grey"}))
	t.Expect(suite.Value(w.Read(ctx, "one"), "spec")).To(gomega.Equal(suite.Value(made, "spec")))
	_, err = w.Create(ctx, w.Object("two", suite.At([]any{"x", nil}, "spec", "list")), metav1.CreateOptions{})
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec.list[1]"}))
}

func unchangedItemsAreTolerated(ctx context.Context, t *suite.T) {
	loose := func(spec *suite.Schema) {
		spec.Properties["keyed"] = suite.Schema{Type: "array", Items: item(suite.Schema{Type: "integer"}),
			XListType: new("map"), XListMapKeys: []string{"name"}}
		spec.Properties["whole"] = suite.Schema{Type: "array", Items: item(suite.Schema{Type: "integer"})}
	}
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(loose)))
	w.Make(ctx, "old", parts("keyed", "a", 100, "b", 1), parts("whole", "a", 100))
	changeSchema(ctx, w, func(spec *suite.Schema) {
		small := suite.Schema{Type: "integer", XValidations: apiextensionsv1.ValidationRules{{Rule: "self <= 10",
			Message: "too large"}}}
		keyed, whole := spec.Properties["keyed"], spec.Properties["whole"]
		keyed.Items, whole.Items = item(small), item(suite.Schema{Type: "integer", Maximum: new(10.0)})
		keyed.MaxItems, whole.MaxItems = new(int64(9)), new(int64(9)) // or else the rule costs too much
		spec.Properties["keyed"], spec.Properties["whole"] = keyed, whole
	}, func() bool {
		_, err := w.Probe(ctx, parts("keyed", "a", 100))
		return apierrors.IsInvalid(err)
	})
	merge := func(patch string) error {
		return suite.ErrorOf(w.Merge(ctx, "old", patch))
	}
	t.Expect(merge(`{"spec":{"color":"red"}}`)).To(gomega.Succeed(), "neither list was changed")
	t.Expect(merge(`{"spec":{"keyed":[{"name":"b","size":2},{"name":"a","size":100}]}}`)).
		To(gomega.Succeed(), "the old item only moved")
	t.Expect(t.Causes(merge(`{"spec":{"keyed":[{"name":"b","size":2},{"name":"a","size":101}]}}`))).
		To(gomega.Equal([]string{"spec.keyed[1].size"}))
	t.Expect(t.Causes(merge(`{"spec":{"keyed":[{"name":"a","size":100},{"name":"c","size":100}]}}`))).
		To(gomega.Equal([]string{"spec.keyed[1].size"}))
	t.Expect(t.Causes(merge(`{"spec":{"whole":[{"name":"a","size":100},{"name":"b","size":1}]}}`))).
		To(gomega.Equal([]string{"spec.whole[0].size"}))
}
