package admission

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
)

var webhookCases = suite.Launching([]suite.Case{
	{ID: "S9/webhook-is-told-the-whole-request", Level: suite.Core, Test: webhookIsToldTheWholeRequest,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go, CreateV1AdmissionReview",
		Promise: "A webhook is told who asks for what: operation, kind and resource, the object before and after, " +
			"the user with groups, the options and a UID of its own."},
	{ID: "S9/mutating-webhooks-run-in-order", Test: mutatingWebhooksRunInOrder,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go; " +
			"k8s.io/apiserver/pkg/admission/configuration/mutating_webhook_manager.go sorts by name",
		Promise: "Mutating webhooks run one after another by the names of their configurations, each sees what those " +
			"before it made, validating ones see the result, and that is stored."},
	{ID: "S9/webhook-is-reinvoked-if-needed", Level: suite.Core, Test: webhookIsReinvokedIfNeeded,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go and reinvocationcontext.go",
		Promise: "A mutating webhook with reinvocationPolicy IfNeeded is called once more if a later one changed the " +
			"object; one with Never is not, and nobody is if nothing changed."},
	{ID: "S9/match-conditions-choose-requests", Level: suite.Core, Test: matchConditionsChooseRequests,
		Source: "KEP-3716; k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go",
		Promise: "A webhook is called only for requests for which all of its match conditions are true; a condition " +
			"that fails refuses the request with 403, or skips the webhook if that is to be ignored."},
	{ID: "S9/selectors-choose-requests", Level: suite.Core, Test: selectorsChooseRequests,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object/matcher.go and " +
			"predicates/namespace/matcher.go",
		Promise: "A webhook is called only in namespaces that its namespaceSelector selects, and for objects that " +
			"its objectSelector selects before or after the change."},
	{ID: "S9/equivalent-requests-match", Level: suite.Core, Test: equivalentRequestsMatch,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go, ShouldCallHook",
		Promise: "With matchPolicy Equivalent a webhook is called for other versions of its resource, with the " +
			"object converted to its own; with Exact it is not."},
	{ID: "S9/dry-run-is-told-to-webhooks", Level: suite.Core, Failure: true, Test: dryRunIsToldToWebhooks,
		Source: "k8s.io/kubernetes/pkg/apis/admissionregistration/validation/validation.go: side effects must be " +
			"None or NoneOnDryRun",
		Promise: "A webhook is told whether a request is a dry run, and one that could not heed it, or that names no " +
			"known review version, is refused with 422."},
	{ID: "S9/webhook-warnings-reach-the-client", Level: suite.Core, Test: webhookWarningsReachTheClient,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go, callHook",
		Promise: "What a webhook warns of is a Warning header of the answer, whether it allows the request or " +
			"denies it."},
})

func webhookIsToldTheWholeRequest(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	h.validate(ctx, h.validating("told", func(w *registrationv1.ValidatingWebhook) {
		w.Rules = append(w.Rules,
			suite.WebhookRule("", "v1", "configmaps", registrationv1.Update, registrationv1.Delete))
		w.FailurePolicy = new(registrationv1.Ignore) // or else the clean-up could not delete ConfigMaps
	}))
	jane := h.As("jane", "system:masters", "painters").Kube.CoreV1().ConfigMaps(h.maps.Namespace)
	_, err := jane.Create(ctx, h.maps.Object("a", "first"), metav1.CreateOptions{FieldManager: "brush"})
	h.Must(err, "create")
	_, err = jane.Update(ctx, h.maps.Object("a", "second"), metav1.UpdateOptions{FieldManager: "roller"})
	h.Must(err, "update")
	h.Must(jane.Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}), "delete")

	calls, last, uids := h.about("a"), map[admissionv1.Operation]*review{}, map[types.UID]bool{}
	for _, c := range calls { // a server calls the webhook again if its copy of the object was stale
		h.toldWho(c.request)
		last[c.request.Operation], uids[c.request.UID] = c.request, true
	}
	h.Expect(last).To(gomega.And(gomega.HaveLen(3), gomega.HaveKey(admissionv1.Create),
		gomega.HaveKey(admissionv1.Update), gomega.HaveKey(admissionv1.Delete)))
	h.Expect(uids).To(gomega.And(gomega.HaveLen(len(calls)), gomega.Not(gomega.HaveKey(types.UID("")))),
		"each review has a UID of its own")
	h.toldWhat(last[admissionv1.Create], "", "first", "CreateOptions", `"fieldManager":"brush"`)
	h.toldWhat(last[admissionv1.Update], "first", "second", "UpdateOptions", `"fieldManager":"roller"`)
	h.toldWhat(last[admissionv1.Delete], "second", "", "DeleteOptions", `"gracePeriodSeconds":0`)
}

// toldWho asserts what all reviews of the case have in common, such as the user and the resource.
func (h *hooks) toldWho(r *review) {
	h.Expect(r.UserInfo.Username).To(gomega.Equal("jane"))
	h.Expect(r.UserInfo.Groups).To(gomega.Equal([]string{"system:masters", "painters", "system:authenticated"}))
	h.Expect(r.Namespace).To(gomega.Equal(h.maps.Namespace))
	h.Expect(r.Kind).To(gomega.Equal(metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}))
	h.Expect(r.Resource).To(gomega.Equal(metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}))
	h.Expect(r.RequestKind).To(gomega.HaveValue(gomega.Equal(r.Kind)))
	h.Expect(r.RequestResource).To(gomega.HaveValue(gomega.Equal(r.Resource)))
	h.Expect(r.SubResource).To(gomega.BeEmpty())
	h.Expect(r.DryRun).To(gomega.HaveValue(gomega.BeFalse()))
}

// toldWhat asserts the content of the object before and after, and the options.
func (h *hooks) toldWhat(r *review, before, after, options, option string) {
	h.Expect(h.content(r.OldObject)).To(gomega.Equal(before), "oldObject of %s", r.Operation)
	h.Expect(h.content(r.Object)).To(gomega.Equal(after), "object of %s", r.Operation)
	h.Expect(string(r.Options.Raw)).To(gomega.And(gomega.ContainSubstring(`"kind":"`+options+`"`),
		gomega.ContainSubstring(option)))
}

// content of a ConfigMap in a review, empty if there is none.
func (h *hooks) content(raw runtime.RawExtension) string { return h.decode(raw).Data["content"] }

func (h *hooks) decode(raw runtime.RawExtension) (object corev1.ConfigMap) {
	if len(raw.Raw) > 0 {
		h.Must(json.Unmarshal(raw.Raw, &object), "decode %s", raw.Raw)
	}
	return object
}

func mutatingWebhooksRunInOrder(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	h.says("b",
		patch(`[{"op":"test","path":"/data/content","value":"by a"},{"op":"add","path":"/data/b","value":"too"}]`))
	h.says("a", patch(`[{"op":"replace","path":"/data/content","value":"by a"}]`))
	h.validate(ctx, h.validating("result"))
	h.mutate(ctx, "b") // which fails until there is a
	h.mutate(ctx, "a")

	made := h.maps.Make(ctx, "one")
	want := map[string]string{"content": "by a", "b": "too"}
	h.Expect(h.asked("one")).To(gomega.Equal([]string{"a", "b", "result"}))
	h.Expect(made.Data).To(gomega.Equal(want))
	h.Expect(h.maps.Read(ctx, "one").Data).To(gomega.Equal(want), "what is stored")
	calls := h.about("one")
	h.Expect(h.content(calls[0].request.Object)).To(gomega.Equal("first"), "what a sees")
	h.Expect(h.content(calls[2].request.Object)).To(gomega.Equal("by a"), "what the validating one sees")
}

func webhookIsReinvokedIfNeeded(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	policy := func(p registrationv1.ReinvocationPolicyType) func(*registrationv1.MutatingWebhook) {
		return func(w *registrationv1.MutatingWebhook) { w.ReinvocationPolicy = &p }
	}
	h.says("c", func(r *review) *verdict {
		if r.Name == "calm" {
			return allow()(r)
		}
		return patch(`[{"op":"replace","path":"/data/content","value":"by c"}]`)(r)
	})
	h.mutate(ctx, "a", policy(registrationv1.IfNeededReinvocationPolicy))
	h.mutate(ctx, "b", policy(registrationv1.NeverReinvocationPolicy))
	h.mutate(ctx, "c", policy(registrationv1.NeverReinvocationPolicy))

	h.maps.Make(ctx, "calm")
	h.Expect(h.asked("calm")).To(gomega.Equal([]string{"a", "b", "c"}), "nothing changed")
	h.maps.Make(ctx, "stormy")
	h.Expect(h.asked("stormy")).To(gomega.Equal([]string{"a", "b", "c", "a"}), "c changed the object")
	h.Expect(h.content(h.about("stormy")[3].request.Object)).To(gomega.Equal("by c"), "what a sees then")
}

func matchConditionsChooseRequests(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	on := func(policy registrationv1.FailurePolicyType, conditions ...string) func(*registrationv1.ValidatingWebhook) {
		return func(w *registrationv1.ValidatingWebhook) {
			w.FailurePolicy = &policy
			for i, expression := range conditions {
				w.MatchConditions = append(w.MatchConditions,
					registrationv1.MatchCondition{Name: string(rune('a' + i)), Expression: expression})
			}
		}
	}
	h.validate(ctx,
		h.validating("loud", on(registrationv1.Fail, "request.operation == 'CREATE'",
			"object.metadata.name != 'quiet'")),
		h.validating("loose", on(registrationv1.Ignore, "object.metadata.name != 'broken' || "+
			"object.data.missing == 'x'")),
		h.validating("strict", on(registrationv1.Fail, "object.metadata.name != 'worse' || "+
			"object.data.missing == 'x'")))

	for name, hooks := range map[string][]string{
		"quiet":  {"loose", "strict"},
		"heard":  {"loose", "loud", "strict"},
		"broken": {"loud", "strict"},
	} {
		h.maps.Make(ctx, name)
		h.Expect(h.asked(name)).To(gomega.ConsistOf(hooks), "webhooks for %s", name)
	}
	_, err := h.make(ctx, "worse")
	h.Expect(err).To(suite.BeStatus(suite.Forbidden))
	h.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("no such key: missing")))
	h.absent(ctx, "worse")
}

func selectorsChooseRequests(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	updates := func(w *registrationv1.ValidatingWebhook) {
		w.Rules = append(w.Rules, suite.WebhookRule("", "v1", "configmaps", registrationv1.Update))
	}
	labelled := func(w *registrationv1.ValidatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "color", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"grey"}},
			{Key: suite.CaseLabel, Operator: metav1.LabelSelectorOpExists},
		}}
	}
	elsewhere := func(w *registrationv1.ValidatingWebhook) {
		w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{h.maps.Namespace}},
		}}
		w.FailurePolicy = new(registrationv1.Ignore)
	}
	h.register(ctx, h.validating("elsewhere", updates, elsewhere), h.validating("colored", updates, labelled))
	h.active(ctx, "colored")

	h.maps.MakeColored(ctx, map[string]string{"grey": "grey", "red": "red"})
	h.Expect(h.asked("grey")).To(gomega.BeEmpty(), "the object is not selected")
	h.Expect(h.asked("red")).To(gomega.Equal([]string{"colored"}), "it is, and the namespace is not")
	for _, color := range []string{"grey", "grey", "red"} {
		_, err := h.maps.Merge(ctx, "red", `{"metadata":{"labels":{"color":"`+color+`"}},"data":{"step":"`+color+`"}}`)
		h.Must(err, "update")
	}
	changes := map[string]bool{} // a set: a server calls the webhook again if its copy was stale
	for _, c := range h.about("red") {
		changes[h.decode(c.request.OldObject).Labels["color"]+" to "+h.decode(c.request.Object).Labels["color"]] = true
	}
	h.Expect(changes).To(gomega.Equal(map[string]bool{" to red": true, "red to grey": true, "grey to red": true}),
		"not from grey to grey")
}

func equivalentRequestsMatch(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	match := func(policy registrationv1.MatchPolicyType) func(*registrationv1.ValidatingWebhook) {
		return func(w *registrationv1.ValidatingWebhook) {
			w.MatchPolicy = &policy
			w.Rules = append(w.Rules,
				suite.WebhookRule("autoscaling", "v1", "horizontalpodautoscalers", registrationv1.Create))
		}
	}
	h.validate(ctx, h.validating("exact", match(registrationv1.Exact)),
		h.validating("equivalent", match(registrationv1.Equivalent)))
	scaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "scaler"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas: 3, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "ReplicaSet", Name: "a",
				APIVersion: "apps/v1"}},
	}
	_, err := h.Kube.AutoscalingV2().HorizontalPodAutoscalers(h.maps.Namespace).Create(ctx, scaler, suite.DryRun)
	h.Must(err, "create")
	h.Expect(h.asked("scaler")).To(gomega.Equal([]string{"equivalent"}))
	told := h.about("scaler")[0].request
	h.Expect(told.Kind).To(gomega.Equal(metav1.GroupVersionKind{Group: "autoscaling", Version: "v1",
		Kind: "HorizontalPodAutoscaler"}))
	h.Expect(told.Resource).To(gomega.Equal(metav1.GroupVersionResource{Group: "autoscaling", Version: "v1",
		Resource: "horizontalpodautoscalers"}))
	h.Expect(told.RequestKind).To(gomega.HaveValue(gomega.HaveField("Version", "v2")))
	h.Expect(told.RequestResource).To(gomega.HaveValue(gomega.HaveField("Version", "v2")))
	h.Expect(string(told.Object.Raw)).To(gomega.ContainSubstring(`"apiVersion":"autoscaling/v1"`))
}

func dryRunIsToldToWebhooks(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	effect := func(class registrationv1.SideEffectClass) func(*registrationv1.ValidatingWebhook) {
		return func(w *registrationv1.ValidatingWebhook) { w.SideEffects = &class }
	}
	refused := &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: h.Name},
		Webhooks: []registrationv1.ValidatingWebhook{
			h.validating("some", effect(registrationv1.SideEffectClassSome)),
			h.validating("old",
				func(w *registrationv1.ValidatingWebhook) { w.AdmissionReviewVersions = []string{"v0"} }),
		},
	}
	_, err := h.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Create(ctx, refused, metav1.CreateOptions{})
	h.Expect(h.Causes(err)).To(gomega.Equal([]string{"webhooks[0].sideEffects", "webhooks[1].admissionReviewVersions"}))

	h.validate(ctx, h.validating("dry", effect(registrationv1.SideEffectClassNoneOnDryRun)))
	h.Must(h.probe(ctx), "dry run")
	h.maps.Make(ctx, "real")
	h.absent(ctx, probeName)
	for _, c := range h.about(probeName) {
		h.Expect(c.request.DryRun).To(gomega.HaveValue(gomega.BeTrue()), "a dry run")
	}
	h.Expect(h.about("real")[0].request.DryRun).To(gomega.HaveValue(gomega.BeFalse()), "a real request")
}

func webhookWarningsReachTheClient(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	h.says("warns", func(r *review) *verdict {
		return &verdict{Allowed: r.Name != "bad", Warnings: []string{"mind the gap", "and the step"}}
	})
	h.validate(ctx, h.validating("warns"))
	want := []string{`299 - "mind the gap"`, `299 - "and the step"`}
	for name, code := range map[string]int{"good": http.StatusCreated, "bad": http.StatusBadRequest} {
		got := h.ExpectCode(h.post(ctx, name), code)
		h.Expect(got.Header.Values("Warning")).To(gomega.Equal(want), "%s", got)
	}
}
