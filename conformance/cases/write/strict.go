package write

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
)

var strictCases = []suite.Case{
	{ID: "S12/strict-validation-of-every-write", Level: suite.Core, Failure: true, Test: strictValidationOfEveryWrite,
		Source: "KEP-2885; k8s.io/apiserver/pkg/endpoints/handlers/create.go; " +
			"k8s.io/apiserver/pkg/endpoints/handlers/update.go; k8s.io/apiserver/pkg/endpoints/handlers/patch.go, " +
			"jsonPatcher, smpPatcher",
		Promise: "fieldValidation=Strict refuses a field that the type does not have, in a create, an update and " +
			"each kind of patch, and nothing is written; Warn drops it with a warning, Ignore without, and Warn is " +
			"the default."},
	{ID: "S12/strict-validation-finds-duplicates", Level: suite.Core, Failure: true,
		Test: strictValidationFindsDuplicates,
		Source: "KEP-2885; k8s.io/apiserver/pkg/endpoints/handlers/patch.go, applyPatcher.applyPatchToCurrentObject " +
			"and applyJSPatch",
		Promise: "fieldValidation=Strict refuses a field that is given twice, in an update, a merge patch and an " +
			"apply; Warn warns about it, and the last value holds."},
	{ID: "S12/validation-mode-must-be-known", Level: suite.Core, Failure: true, Test: validationModeMustBeKnown,
		Source:  "KEP-2885; k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateFieldValidation",
		Promise: "A fieldValidation or dryRun that there is not is refused with 422 that names it, whatever the verb."},
}

// write is one way to write the ConfigMap a: with a field in it that is wrong.
type write struct {
	method, media string
	body          string
	refused       int // the code of the refusal
}

// ask sends the write with a query.
func (w write) ask(ctx context.Context, c *suite.ConfigMaps, query string) suite.Answer {
	path := c.Path()
	if w.method != http.MethodPost {
		path += "/a"
	}
	return c.T.Ask(ctx, suite.Request{
		Method: w.method, Path: path + "?" + query, Body: []byte(w.body),
		Header: map[string]string{"Content-Type": w.media},
	})
}

const asJSON = "application/json"

func strictValidationOfEveryWrite(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a")
	whole := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"surprise":"x"}`, name)
	}
	for name, w := range map[string]write{
		"create": {http.MethodPost, asJSON, whole("b"), http.StatusBadRequest},
		"update": {http.MethodPut, asJSON, whole("a"), http.StatusBadRequest},
		"merge patch": {http.MethodPatch, string(types.MergePatchType), `{"surprise":"x"}`,
			http.StatusUnprocessableEntity},
		"strategic merge patch": {http.MethodPatch, string(types.StrategicMergePatchType), `{"surprise":"x"}`,
			http.StatusUnprocessableEntity},
		"JSON patch": {http.MethodPatch, string(types.JSONPatchType), `[{"op":"add","path":"/surprise","value":"x"}]`,
			http.StatusUnprocessableEntity},
	} {
		before := cms.Read(ctx, "a")
		got := w.ask(ctx, cms, "fieldValidation=Strict")
		t.Expect(got.Code).To(gomega.Equal(w.refused), "%s: %s", name, got)
		t.Expect(string(got.Body)).To(gomega.ContainSubstring(`unknown field \"surprise\"`), "%s: %s", name, got)
		t.Expect(cms.Read(ctx, "a")).To(gomega.Equal(before), "after the %s that was refused", name)

		for query, warned := range map[string]bool{"fieldValidation=Warn": true, "fieldValidation=Ignore": false,
			"": true} {
			got := w.ask(ctx, cms, query+"&dryRun=All")
			t.Expect(got.Code).To(gomega.BeElementOf(http.StatusOK, http.StatusCreated), "%s with %q: %s", name, query,
				got)
			t.Expect(strings.Contains(got.Header.Get("Warning"), "surprise")).To(gomega.Equal(warned),
				"%s with %q is warned: %q", name, query, got.Header.Get("Warning"))
			t.Expect(string(got.Body)).NotTo(gomega.ContainSubstring(`"surprise"`), "%s with %q: %s", name, query, got)
		}
	}
}

func strictValidationFindsDuplicates(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a")
	const twice = `"data":{"content":"one","content":"two"}`
	const whole = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},` + twice + `}`
	for name, w := range map[string]write{
		"update": {http.MethodPut, asJSON, whole, http.StatusBadRequest},
		"merge patch": {http.MethodPatch, string(types.MergePatchType), `{` + twice + `}`,
			http.StatusUnprocessableEntity},
		"apply": {http.MethodPatch, string(types.ApplyPatchType), whole, http.StatusBadRequest},
	} {
		query := ""
		if name == "apply" {
			query = "&fieldManager=alice&force=true"
		}
		got := w.ask(ctx, cms, "fieldValidation=Strict"+query)
		t.Expect(got.Code).To(gomega.Equal(w.refused), "%s: %s", name, got)
		t.Expect(string(got.Body)).To(gomega.ContainSubstring("content"), "%s: %s", name, got)
		t.Expect(cms.Read(ctx, "a").Data).To(gomega.HaveKeyWithValue("content", "first"),
			"after the %s that was refused", name)

		warned := w.ask(ctx, cms, "fieldValidation=Warn&dryRun=All"+query)
		t.Expect(warned.Code).To(gomega.Equal(http.StatusOK), "%s: %s", name, warned)
		t.Expect(warned.Header.Get("Warning")).To(gomega.ContainSubstring("content"), "%s: %s", name, warned)
		t.Expect(string(warned.Body)).To(gomega.ContainSubstring(`"content":"two"`), "%s: %s", name, warned)
	}
}

func validationModeMustBeKnown(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a")
	const whole = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	for _, w := range []write{
		{method: http.MethodPost, media: asJSON, body: whole},
		{method: http.MethodPut, media: asJSON, body: whole},
		{method: http.MethodPatch, media: string(types.MergePatchType), body: `{"data":null}`},
		{method: http.MethodPatch, media: string(types.ApplyPatchType), body: whole},
	} {
		for _, query := range []string{"fieldValidation=Sometimes", "dryRun=Some"} {
			got := w.ask(ctx, cms, query+"&fieldManager=alice")
			status := t.ExpectStatus(got, suite.Invalid)
			field, _, _ := strings.Cut(query, "=")
			t.Expect(status.Details.Causes).To(gomega.ConsistOf(gomega.HaveField("Field", field)), "%s", got)
		}
	}
	t.Expect(cms.Read(ctx, "a").Data).To(gomega.HaveKeyWithValue("content", "first"), "after what was refused")
}
