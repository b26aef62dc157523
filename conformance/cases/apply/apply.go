// Package apply has the cases about server-side apply: who owns which field, and what becomes of
// it. An object is applied by several managers, and its managedFields are read back.
package apply

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
)

// Cases are the cases of this area.
var Cases = slices.Concat([]suite.Case{
	{ID: "S12/apply-creates-once", Level: suite.Core, Test: applyCreatesOnce,
		Source: "KEP-555; k8s.io/apiserver/pkg/endpoints/handlers/patch.go, applyPatcher.createNewObject",
		Promise: "Applying a name that is free creates the object (201) and records who applied what; applying the " +
			"same again writes nothing."},
	{ID: "S12/apply-hands-a-field-over", Level: suite.Core, Test: applyHandsAFieldOver,
		Source: "KEP-555; sigs.k8s.io/structured-merge-diff/v6/merge/update.go, Apply and prune",
		Promise: "Two managers that apply the same value share its field; when one stops, the field stays and is the " +
			"other's alone, who then has to be asked."},
	{ID: "S12/apply-dry-run-decides-alike", Level: suite.Core, Failure: true, Test: applyDryRunDecidesAlike,
		Source: "KEP-555; k8s.io/apiserver/pkg/endpoints/handlers/patch.go, PatchResource: dryrun.IsDryRun",
		Promise: "An apply with dryRun=All answers what a real one would, conflicts too, and leaves neither values " +
			"nor managers behind."},
	{ID: "S12/update-takes-fields-over", Level: suite.Core, Failure: true, Test: updateTakesFieldsOver,
		Source: "KEP-555; sigs.k8s.io/structured-merge-diff/v6/merge/update.go, Update",
		Promise: "An update never conflicts: it takes the fields that it changes from those who applied them, and " +
			"who applies them again is told."},
	{ID: "S12/removed-field-has-no-owner", Level: suite.Core, Test: removedFieldHasNoOwner,
		Source: "KEP-555; sigs.k8s.io/structured-merge-diff/v6/merge/update.go, Update: removed fields leave all " +
			"managers",
		Promise: "A field that an update removes belongs to nobody, not even to who applied it, and any manager may " +
			"apply it anew."},
	{ID: "S12/managers-before-the-first-apply", Failure: true,
		Test: managersBeforeTheFirstApply,
		Source: "KEP-555; k8s.io/apimachinery/pkg/util/managedfields/internal/skipnonapplied.go; " +
			"k8s.io/apimachinery/pkg/util/managedfields/internal/managedfields.go, RemoveObjectManagedFields",
		Promise: "managedFields can be cleared by an update; a later apply finds all that is there owned by " +
			"before-first-apply."},
	{ID: "S12/old-update-managers-are-merged", Test: oldUpdateManagersAreMerged,
		Source: "k8s.io/apimachinery/pkg/util/managedfields/internal/capmanagers.go",
		Promise: "At most ten managers that update are kept apart; the oldest become ancient-changes, and those that " +
			"apply stay."},
}, structureCases, refusalCases)

// object is one object that managers apply.
type object struct {
	*suite.T
	collection, apiVersion, kind, name string
}

// configMap is a ConfigMap in the case's namespace that is not there yet.
func configMap(ctx context.Context, t *suite.T) object {
	return object{t, t.ConfigMaps(ctx).Path(), "v1", "ConfigMap", "a"}
}

// deployment is a Deployment in the case's namespace that is not there yet.
func deployment(ctx context.Context, t *suite.T) object {
	namespace := t.Namespace(ctx)
	return object{t, "/apis/apps/v1/namespaces/" + namespace + "/deployments", "apps/v1", "Deployment", "a"}
}

// fields are what is applied beside the identity of the object: metadata's and the top's.
type fields struct{ metadata, top string }

// body is an object as it is applied.
func (o object) body(f fields) []byte {
	var metadata, top string
	if f.metadata != "" {
		metadata = "," + f.metadata
	}
	if f.top != "" {
		top = "," + f.top
	}
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q%s}%s}`, o.apiVersion, o.kind, o.name,
		metadata, top)
}

// ask applies fields as a manager; further queries follow, like "force=true".
func (o object) ask(ctx context.Context, manager string, f fields, queries ...string) suite.Answer {
	return o.send(ctx, o.body(f), append([]string{"fieldManager=" + url.QueryEscape(manager)}, queries...)...)
}

// send applies a body.
func (o object) send(ctx context.Context, body []byte, queries ...string) suite.Answer {
	return o.Ask(ctx, suite.Request{
		Method: http.MethodPatch, Path: o.collection + "/" + o.name + "?" + strings.Join(queries, "&"), Body: body,
		Header: map[string]string{"Content-Type": string(types.ApplyPatchType)},
	})
}

// apply applies fields, which must succeed, and returns the object.
func (o object) apply(ctx context.Context, manager string, f fields, queries ...string) *unstructured.Unstructured {
	return o.decoded(o.ask(ctx, manager, f, queries...))
}

func (o object) decoded(got suite.Answer) *unstructured.Unstructured {
	o.Expect(got.Code).To(gomega.BeElementOf(http.StatusOK, http.StatusCreated), "%s", got)
	found := &unstructured.Unstructured{}
	o.Must(found.UnmarshalJSON(got.Body), "decode: %s", got)
	return found
}

// put updates the object as a manager, with no resourceVersion.
func (o object) put(ctx context.Context, manager string, f fields) *unstructured.Unstructured {
	path := o.collection + "/" + o.name + "?fieldManager=" + url.QueryEscape(manager)
	return o.decoded(o.Ask(ctx, suite.Request{Method: http.MethodPut, Path: path, Body: o.body(f)}))
}

// read gets the object.
func (o object) read(ctx context.Context) *unstructured.Unstructured {
	return o.decoded(o.Get(ctx, o.collection+"/"+o.name))
}

// conflicts asserts that an answer is a conflict about one field with one manager.
func (o object) conflicts(got suite.Answer, manager, field string) {
	status := o.ExpectStatus(got, suite.Conflict)
	o.Expect(status.Details).NotTo(gomega.BeNil(), "%s", got)
	o.Expect(status.Details.Causes).To(gomega.HaveLen(1), "%s", got)
	cause := status.Details.Causes[0]
	o.Expect(cause.Type).To(gomega.Equal(metav1.CauseTypeFieldManagerConflict), "%s", got)
	o.Expect(cause.Field).To(gomega.Equal(field), "%s", got)
	o.Expect(cause.Message).To(gomega.ContainSubstring("conflict with %q", manager), "%s", got)
}

// data is content for a ConfigMap, as JSON.
func data(content string) fields { return fields{top: `"data":{` + content + `}`} }
