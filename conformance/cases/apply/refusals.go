package apply

import (
	"context"
	"net/http"
	"strings"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
)

var refusalCases = []suite.Case{
	{ID: "S12/apply-needs-a-manager", Level: suite.Core, Failure: true, Test: applyNeedsAManager,
		Source: "KEP-555; k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidatePatchOptions and " +
			"ValidateFieldManager",
		Promise: "An apply without a fieldManager, or with one that is too long or not printable, is refused with " +
			"422, as is force on another kind of patch."},
	{ID: "S12/apply-of-managed-fields-is-refused", Level: suite.Core, Failure: true,
		Test:   applyOfManagedFieldsIsRefused,
		Source: "KEP-555; k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go, Apply",
		Promise: "What is applied must not carry managedFields, must be of the version of its path and must be YAML: " +
			"400 otherwise, and nothing is written."},
	{ID: "S12/apply-with-uid-does-not-create", Level: suite.Core, Failure: true, Test: applyWithUIDDoesNotCreate,
		Source: "k8s.io/apiserver/pkg/endpoints/handlers/patch.go, applyPatcher.createNewObject; " +
			"k8s.io/apiserver/pkg/registry/generic/registry/store.go, Update",
		Promise: "An apply that names a uid or a resourceVersion is about that object: 409 if there is none or it " +
			"has changed, 422 if it is another."},
}

func applyNeedsAManager(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	body := o.body(data(`"color":"red"`))
	for _, query := range []string{"", "fieldManager=", "fieldManager=" + strings.Repeat("x", 129),
		"fieldManager=a%07b"} {
		got := o.send(ctx, body, query)
		status := t.ExpectStatus(got, suite.Invalid)
		t.Expect(status.Details.Causes).To(gomega.ConsistOf(gomega.HaveField("Field", "fieldManager")), "%s", got)
	}
	t.Answered(ctx, o.collection+"/"+o.name, http.StatusNotFound)
	longest := strings.Repeat("x", 128)
	t.Expect(suite.Owners(o.apply(ctx, longest, data(`"color":"red"`)), "f:color")).
		To(gomega.Equal([]string{longest + " Apply"}))

	forced := t.Ask(ctx, suite.Request{
		Method: http.MethodPatch, Path: o.collection + "/" + o.name + "?force=true",
		Body:   []byte(`{"data":{"color":"blue"}}`),
		Header: map[string]string{"Content-Type": string(types.MergePatchType)},
	})
	status := t.ExpectStatus(forced, suite.Invalid)
	t.Expect(status.Details.Causes).To(gomega.ConsistOf(gomega.HaveField("Field", "force")), "%s", forced)
}

func applyOfManagedFieldsIsRefused(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	before := o.apply(ctx, "alice", data(`"color":"red"`))
	refused := func(body []byte, why string) {
		got := o.send(ctx, body, "fieldManager=bob", "force=true")
		t.Expect(t.ExpectStatus(got, suite.BadRequest).Message).To(gomega.ContainSubstring(why), "%s", got)
	}
	refused(o.body(fields{metadata: `"managedFields":[{"manager":"bob","operation":"Apply"}]`,
		top: `"data":{"color":"blue"}`}),
		"metadata.managedFields must be nil")
	other := o
	other.apiVersion = "v2"
	refused(other.body(data(`"color":"blue"`)), "v2")
	other = o
	other.name = "another"
	refused(other.body(data(`"color":"blue"`)), "another")
	refused([]byte("a: b: c"), "yaml")
	t.Expect(o.read(ctx)).To(gomega.Equal(before), "after what was refused")
}

func applyWithUIDDoesNotCreate(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	const other = "00000000-0000-0000-0000-000000000000"
	identified := func(metadata string) fields { return fields{metadata: metadata, top: `"data":{"color":"red"}`} }
	got := o.ask(ctx, "alice", identified(`"uid":"`+other+`"`))
	t.Expect(t.ExpectStatus(got, suite.Conflict).Message).To(gomega.ContainSubstring("uid mismatch"), "%s", got)
	t.Answered(ctx, o.collection+"/"+o.name, http.StatusNotFound)

	created := o.apply(ctx, "alice", data(`"color":"red"`))
	changed := o.apply(ctx, "alice", data(`"color":"green"`))
	t.ExpectStatus(o.ask(ctx, "alice", identified(`"uid":"`+other+`"`)), suite.Invalid)
	old := o.ask(ctx, "alice", identified(`"resourceVersion":"`+created.GetResourceVersion()+`"`))
	t.ExpectStatus(old, suite.Conflict)
	t.Expect(o.read(ctx)).To(gomega.Equal(changed), "after what was refused")
	right := o.apply(ctx, "alice", identified(`"uid":"`+string(changed.GetUID())+`","resourceVersion":"`+
		changed.GetResourceVersion()+`"`))
	t.Expect(suite.Value(right, "data", "color")).To(gomega.Equal("red"))
}
