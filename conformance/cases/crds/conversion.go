package crds

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/conformance/suite"
)

var conversionCases = suite.Launching([]suite.Case{
	{ID: "S10/conversion-webhook-converts", Test: conversionWebhookConverts,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, Convert",
		Promise: "With a conversion webhook each version shows the one stored object in its own form, to gets, lists " +
			"and watches, and can write it."},
	{ID: "S10/conversion-failure-is-told", Failure: true, Test: conversionFailureIsTold,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, " +
			"getConvertedObjectsFromResponse",
		Promise: "While its conversion webhook fails, the other version is answered 500 with what the webhook says, " +
			"nothing is written by it, and the stored version is served."},
	{ID: "S10/conversion-answers-are-checked", Failure: true, Test: conversionAnswersAreChecked,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, " +
			"getConvertedObjectsFromResponse, Convert and validateConvertedObject",
		Promise: "A conversion webhook's answer to another request, with another number of objects, another version, " +
			"kind, name or uid, is not believed: 500 that says why."},
	{ID: "S10/conversion-keeps-metadata", Test: conversionKeepsMetadata,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, restoreObjectMeta",
		Promise: "A conversion webhook may change labels and annotations; of all other metadata the object keeps " +
			"its own."},
})

// converter is a conversion webhook: spec.color of v1 is spec.colour in v2.
type converter struct {
	distort atomic.Pointer[func(*apiextensionsv1.ConversionReview)]
}

// ServeHTTP implements http.Handler.
func (c *converter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "this is no ConversionReview", http.StatusBadRequest)
		return
	}
	review.Response = converted(review.Request)
	review.Request = nil
	if distort := c.distort.Load(); distort != nil {
		(*distort)(&review)
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_ = json.NewEncoder(w).Encode(review) // the server tells of an answer that is cut off
}

func converted(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID,
		Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range request.Objects {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			return response
		}
		object.SetAPIVersion(request.DesiredAPIVersion)
		if spec, ok := object.Object["spec"].(map[string]any); ok {
			color, was := spec["color"], "color"
			if color == nil {
				color, was = spec["colour"], "colour"
			}
			delete(spec, was)
			spec[map[string]string{"color": "colour", "colour": "color"}[was]] = color
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: &object})
	}
	return response
}

// set changes how the webhook answers from now on.
func (c *converter) set(distort func(*apiextensionsv1.ConversionReview)) { c.distort.Store(&distort) }

type (
	object = unstructured.Unstructured
	review = apiextensionsv1.ConversionReview
)

// changing distorts each object that was converted.
func changing(change func(*object)) func(*review) {
	return func(r *review) {
		for _, raw := range r.Response.ConvertedObjects {
			change(raw.Object.(*object))
		}
	}
}

// installConverted installs a CRD whose webhook converts between v1, which is stored, and v2.
func installConverted(ctx context.Context, t *suite.T) (*converter, *suite.Widgets, *suite.Widgets) {
	cp, other := t.Shared(ctx, "defaults")
	webhook := &converter{}
	server, err := cp.Webhooks().Serve(webhook)
	t.Must(err, "serve a conversion webhook")
	t.Cleanup(server.Stop)
	v1 := other.Install(ctx, other.WidgetCRD(func(definition *suite.CRD) {
		second := suite.WidgetVersion("v2", false)
		spec := second.Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties = map[string]suite.Schema{"colour": {Type: "string"}}
		second.Schema.OpenAPIV3Schema.Properties["spec"] = spec
		definition.Spec.Versions = append(definition.Spec.Versions, second)
		definition.Spec.Conversion = server.Conversion("/")
	}))
	// Objects of before are not converted when the definition goes.
	t.Cleanup(func(context.Context) error { webhook.distort.Store(nil); return nil })
	v2 := other.WidgetsOf(v1.CRD, "v2")
	other.Served(ctx, v2.Path)
	return webhook, v1, v2
}

func conversionWebhookConverts(ctx context.Context, t *suite.T) {
	_, v1, v2 := installConverted(ctx, t)
	written := v1.Make(ctx, "one", suite.At("red", "spec", "color"))
	read := v2.Read(ctx, "one")
	t.Expect(read.GetAPIVersion()).To(gomega.Equal(v2.Resource.GroupVersion().String()))
	t.Expect(suite.Value(read, "spec")).To(gomega.Equal(map[string]any{"colour": "red"}))
	t.Expect(read.GetUID()).To(gomega.Equal(written.GetUID()))
	t.Expect(read.GetResourceVersion()).To(gomega.Equal(written.GetResourceVersion()))

	list := v2.MustList(ctx)
	t.Expect(list.Items).To(gomega.HaveLen(1))
	t.Expect(list.Items[0].Object).To(gomega.Equal(read.Object))
	events := t.Watch(ctx, v2.Watch, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	t.Must(suite.ErrorOf(v1.Merge(ctx, "one", `{"spec":{"color":"blue"}}`)), "change Widget one in v1")
	event := events.Next(ctx)
	t.Expect(event.Type).To(gomega.Equal(watch.Modified))
	t.Expect(suite.Value(event.Object.(*unstructured.Unstructured), "spec")).
		To(gomega.Equal(map[string]any{"colour": "blue"}))

	_, err := v2.Merge(ctx, "one", `{"spec":{"colour":"green"}}`)
	t.Expect(err).NotTo(gomega.HaveOccurred(), "write in v2")
	back := v1.Read(ctx, "one")
	t.Expect(back.GetAPIVersion()).To(gomega.Equal(v1.Resource.GroupVersion().String()))
	t.Expect(suite.Value(back, "spec")).To(gomega.Equal(map[string]any{"color": "green"}))
}

func conversionFailureIsTold(ctx context.Context, t *suite.T) {
	webhook, v1, v2 := installConverted(ctx, t)
	v1.Make(ctx, "one", suite.At("red", "spec", "color"))
	webhook.set(func(r *review) {
		r.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "the colours are gone"}
	})
	fails := func(err error) {
		t.Expect(suite.StatusOf(err).Code).To(gomega.BeEquivalentTo(http.StatusInternalServerError), "%v", err)
		t.Expect(err.Error()).To(gomega.And(gomega.ContainSubstring("conversion webhook for"),
			gomega.ContainSubstring("the colours are gone")))
	}
	_, err := v2.Get(ctx, "one", metav1.GetOptions{})
	fails(err)
	_, err = v2.Merge(ctx, "one", `{"spec":{"colour":"blue"}}`)
	fails(err)
	_, err = v2.TryMake(ctx, "two", suite.At("blue", "spec", "colour"))
	fails(err)
	list := v1.MustList(ctx)
	t.Expect(list.Items).To(gomega.HaveLen(1))
	t.Expect(suite.Value(&list.Items[0], "spec", "color")).To(gomega.Equal("red"))
	webhook.distort.Store(nil)
	t.Expect(suite.Value(v2.Read(ctx, "one"), "spec", "colour")).To(gomega.Equal("red"))
}

func conversionAnswersAreChecked(ctx context.Context, t *suite.T) {
	webhook, v1, v2 := installConverted(ctx, t)
	v1.Make(ctx, "one", suite.At("red", "spec", "color"))
	stored, labels := v1.Resource.GroupVersion().String(), map[string]string{"a b": "c"}
	for name, c := range map[string]struct {
		distort func(*review)
		why     string
	}{
		"to another request": {func(r *review) { r.Response.UID = "other" }, `got "other"`},
		"of another kind":    {func(r *review) { r.Kind = "Review" }, `no kind "Review"`},
		"empty":              {func(r *review) { r.Response = nil }, `no response provided`},
		"without a result":   {func(r *review) { r.Response.Result.Status = "" }, `response.result.status was ''`},
		"without objects": {
			func(r *review) { r.Response.ConvertedObjects = nil }, `returned 0 objects, expected 1`},
		"in another version":   {changing(func(u *object) { u.SetAPIVersion(stored) }), `invalid groupVersion`},
		"with another object":  {changing(func(u *object) { u.SetKind("Gadget") }), `invalid kind`},
		"with another name":    {changing(func(u *object) { u.SetName("two") }), `must have the same name`},
		"with another uid":     {changing(func(u *object) { u.SetUID(types.UID("other")) }), `must have the same UID`},
		"without metadata":     {changing(func(u *object) { delete(u.Object, "metadata") }), `must have the same name`},
		"with metadata broken": {changing(func(u *object) { u.SetLabels(labels) }), `invalid metadata`},
	} {
		webhook.set(c.distort)
		_, err := v2.Get(ctx, "one", metav1.GetOptions{})
		t.Expect(suite.StatusOf(err).Code).To(gomega.BeEquivalentTo(http.StatusInternalServerError), "an answer %s: %v",
			name, err)
		t.Expect(err.Error()).To(gomega.ContainSubstring(c.why), "an answer %s", name)
	}
}

func conversionKeepsMetadata(ctx context.Context, t *suite.T) {
	webhook, v1, v2 := installConverted(ctx, t)
	written := v1.Make(ctx, "one", suite.At("red", "spec", "color"), suite.At("v1", "metadata", "labels", "form"))
	webhook.set(changing(func(u *object) {
		u.SetLabels(map[string]string{"form": "v2"})
		u.SetAnnotations(map[string]string{"note": "converted"})
		u.SetFinalizers([]string{"conformance.snowglobe.test/forged"})
		u.SetGeneration(99)
		u.SetResourceVersion("99")
		u.SetCreationTimestamp(metav1.Time{})
	}))
	read := v2.Read(ctx, "one")
	t.Expect(read.GetLabels()).To(gomega.Equal(map[string]string{"form": "v2"}))
	t.Expect(read.GetAnnotations()).To(gomega.Equal(map[string]string{"note": "converted"}))
	t.Expect(read.GetFinalizers()).To(gomega.BeEmpty())
	t.Expect(read.GetGeneration()).To(gomega.Equal(written.GetGeneration()))
	t.Expect(read.GetResourceVersion()).To(gomega.Equal(written.GetResourceVersion()))
	t.Expect(read.GetCreationTimestamp()).To(gomega.Equal(written.GetCreationTimestamp()))
	t.Expect(v1.Read(ctx, "one").GetLabels()).To(gomega.Equal(map[string]string{"form": "v1"}), "what is stored")
}
