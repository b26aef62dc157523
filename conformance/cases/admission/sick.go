package admission

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var sickWebhookCases = suite.Launching([]suite.Case{
	{ID: "S9/webhook-denial-has-its-code-and-message", Level: suite.Core, Failure: true,
		Test:   webhookDenialHasItsCodeAndMessage,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go, ToStatusErr",
		Promise: "A request that a webhook denies is answered with the webhook's name and message, and its code and " +
			"reason if they are those of a failure, and 400 otherwise; nothing is stored."},
	{ID: "S9/mutating-webhook-can-deny", Level: suite.Core, Failure: true, Test: mutatingWebhookCanDeny,
		Source:  "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go: a rejection ends the dispatch",
		Promise: "When a mutating webhook denies a request, no webhook after it is called."},
	{ID: "S9/unreachable-webhook-fails-or-is-ignored", Level: suite.Core, Failure: true,
		Test: unreachableWebhookFailsOrIsIgnored,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go, Dispatch, and " +
			"mutating/dispatcher.go",
		Promise: "If a webhook can't be reached, a request is answered 500 and names it with failurePolicy Fail, " +
			"which is the default, and goes on without it with Ignore."},
	{ID: "S9/slow-webhook-is-cut-off", Level: suite.Core, Failure: true, Test: slowWebhookIsCutOff,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go, callHook: timeoutSeconds",
		Promise: "A webhook that has not answered within its timeoutSeconds has failed, and is told of that time by " +
			"a query parameter."},
	{ID: "S9/webhook-answer-is-checked", Level: suite.Core, Failure: true, Test: webhookAnswerIsChecked,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go, VerifyAdmissionResponse",
		Promise: "A webhook's answer to another review, a patch by a validating webhook or a patch without its type " +
			"are failures of the webhook: 500, unless failures are ignored."},
	{ID: "S9/ignored-failure-is-no-denial", Level: suite.Core, Failure: true, Test: ignoredFailureIsNoDenial,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go: failurePolicy is about " +
			"calls that fail",
		Promise: "failurePolicy Ignore ignores failures to call a webhook, and not its denials; several webhooks " +
			"must all allow a request."},
	{ID: "S9/webhook-configurations-call-no-webhook", Level: suite.Core, Failure: true,
		Test: webhookConfigurationsCallNoWebhook,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go, " +
			"IsExemptAdmissionConfigurationResource",
		Promise: "A webhook for everything that denies everything can still be removed: requests for webhook " +
			"configurations call none."},
})

func webhookDenialHasItsCodeAndMessage(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	statuses := map[string]*metav1.Status{
		"coded":   {Code: http.StatusTeapot, Message: "short and stout"},
		"reason":  {Code: http.StatusConflict, Reason: metav1.StatusReasonConflict},
		"success": {Code: http.StatusOK, Status: metav1.StatusSuccess, Message: "well"},
	}
	h.says("deny", func(r *review) *verdict { return deny(statuses[r.Name].DeepCopy())(r) })
	h.validate(ctx, h.validating("deny"))
	denied := fmt.Sprintf("admission webhook %q denied the request", fullName("deny"))
	for name, want := range map[string]metav1.Status{
		"coded":   {Code: http.StatusTeapot, Message: denied + ": short and stout"},
		"reason":  {Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: denied + ": Conflict"},
		"success": {Code: http.StatusBadRequest, Message: denied + ": well"},
		"none":    {Code: http.StatusBadRequest, Message: denied + " without explanation"},
	} {
		got := h.ExpectStatus(h.post(ctx, name), suite.Refusal{Code: int(want.Code), Reason: want.Reason})
		h.Expect(got.Message).To(gomega.Equal(want.Message))
		h.absent(ctx, name)
	}
}

func mutatingWebhookCanDeny(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	h.validate(ctx, h.validating("last"))
	h.mutate(ctx, "b")
	h.says("a", func(r *review) *verdict {
		if r.Name == probeName {
			return allow()(r)
		}
		return deny(&metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no"})(r)
	})
	h.mutate(ctx, "a")
	_, err := h.make(ctx, "one")
	h.Expect(err).To(suite.BeStatus(suite.Forbidden))
	h.Expect(err).To(gomega.MatchError(fmt.Sprintf("admission webhook %q denied the request: no", fullName("a"))))
	h.Expect(h.asked("one")).To(gomega.Equal([]string{"a"}))
	h.absent(ctx, "one")
}

// nowhere makes a webhook unreachable: nothing is served at that address.
func nowhere(w *registrationv1.ValidatingWebhook) {
	w.ClientConfig.URL = new("https://127.0.0.1:1/" + w.Name)
}

// called selects one object by its name.
func called(name string) func(*registrationv1.ValidatingWebhook) {
	return func(w *registrationv1.ValidatingWebhook) {
		w.MatchConditions = []registrationv1.MatchCondition{{Name: "name",
			Expression: "object.metadata.name == '" + name + "'"}}
	}
}

func ignoring(w *registrationv1.ValidatingWebhook) { w.FailurePolicy = new(registrationv1.Ignore) }

func unreachableWebhookFailsOrIsIgnored(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	h.register(ctx,
		h.validating("gone", called("closed"), nowhere),
		h.validating("ignored", called("open"), nowhere, ignoring),
		h.validating("there"))
	h.active(ctx, "there")
	h.failing(ctx, "closed", "gone", "failed to call webhook")
	h.maps.Make(ctx, "open")
	h.Expect(h.asked("open")).To(gomega.Equal([]string{"there"}))
}

// failing asserts that making an object fails because a webhook does.
func (h *hooks) failing(ctx context.Context, name, hook, why string) {
	status := h.ExpectStatus(h.post(ctx, name), suite.InternalError)
	h.Expect(status.Message).To(gomega.HavePrefix("Internal error occurred: failed calling webhook %q: %s",
		fullName(hook), why))
	h.absent(ctx, name)
}

func slowWebhookIsCutOff(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	h.silence("slow")
	h.silence("loose")
	patience := func(seconds int32) func(*registrationv1.ValidatingWebhook) {
		return func(w *registrationv1.ValidatingWebhook) { w.TimeoutSeconds = &seconds }
	}
	h.register(ctx,
		h.validating("slow", called("closed"), patience(2)),
		h.validating("loose", called("open"), patience(1), ignoring),
		h.validating("there"))
	h.active(ctx, "there")

	began := time.Now()
	h.failing(ctx, "closed", "slow", fmt.Sprintf("failed to call webhook: Post %q: context deadline exceeded",
		*h.at("slow").URL+"?timeout=2s"))
	took := time.Since(began)
	h.Expect(took).To(gomega.And(gomega.BeNumerically(">=", 2*time.Second), gomega.BeNumerically("<", 20*time.Second)),
		"the time until the answer")
	h.maps.Make(ctx, "open")
	h.Expect(h.asked("open")).To(gomega.ConsistOf("loose", "there"))
}

func webhookAnswerIsChecked(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	h.says("check", func(r *review) *verdict {
		said := patch(`[{"op":"replace","path":"/data/content","value":"x"}]`)(r)
		switch r.Name {
		case "stranger":
			return &verdict{Allowed: true, UID: "another"}
		case "patch", "ignored":
			return said
		case "type":
			return &verdict{Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch)}
		}
		return allow()(r)
	})
	h.says("mutate", func(r *review) *verdict {
		if r.Name == "untyped" {
			return &verdict{Allowed: true, Patch: []byte(`[{"op":"remove","path":"/data"}]`)}
		}
		return allow()(r)
	})
	h.validate(ctx, h.validating("check", func(w *registrationv1.ValidatingWebhook) {
		w.MatchConditions = []registrationv1.MatchCondition{{Name: "strict",
			Expression: "object.metadata.name != 'ignored'"}}
	}))
	h.mutate(ctx, "mutate")
	for name, why := range map[string]string{
		"stranger": `expected response.uid=`,
		"patch":    `validating webhook may not return response.patch`,
		"type":     `validating webhook may not return response.patchType`,
	} {
		h.failing(ctx, name, "check", "received invalid webhook response: "+why)
	}
	h.failing(ctx, "untyped", "mutate", "received invalid webhook response: webhook returned response.patch but not "+
		"response.patchType")
	h.maps.Make(ctx, "fine")
}

func ignoredFailureIsNoDenial(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	h.says("no", func(r *review) *verdict {
		if r.Name == "allowed" || r.Name == probeName {
			return allow()(r)
		}
		return deny(&metav1.Status{Code: http.StatusForbidden, Message: "no"})(r)
	})
	h.validate(ctx, h.validating("no", ignoring), h.validating("yes"))
	h.ExpectStatus(h.post(ctx, "denied"), suite.Refusal{Code: http.StatusForbidden})
	h.absent(ctx, "denied")
	h.maps.Make(ctx, "allowed")
	h.Expect(h.asked("allowed")).To(gomega.ConsistOf("no", "yes"))
}

func webhookConfigurationsCallNoWebhook(ctx context.Context, t *suite.T) {
	h := newHooks(ctx, t)
	h.says("all", func(r *review) *verdict {
		if r.Namespace == h.maps.Namespace || r.Resource.Group == registrationv1.GroupName {
			return deny(&metav1.Status{Message: "nothing at all"})(r)
		}
		return allow()(r) // what other cases do on the same control plane
	})
	h.validate(ctx, h.validating("all", func(w *registrationv1.ValidatingWebhook) {
		w.NamespaceSelector = nil
		w.Rules = []registrationv1.RuleWithOperations{suite.WebhookRule("*", "*", "*", registrationv1.OperationAll)}
	}))
	h.ExpectStatus(h.post(ctx, "one"), suite.Refusal{Code: http.StatusBadRequest})
	webhooks := h.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	h.Must(webhooks.Delete(ctx, h.Name, metav1.DeleteOptions{}), "delete the configuration")
	h.Eventually(ctx, func() error { return h.probe(ctx) }).Should(gomega.Succeed(), "the webhook is still called")
	h.Expect(h.asked(h.Name)).To(gomega.BeEmpty(), "the webhook was called for its own configuration")
}
