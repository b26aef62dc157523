package admission

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/fakes/webhook"
)

type (
	review  = admissionv1.AdmissionRequest
	verdict = admissionv1.AdmissionResponse
	// answer answers the review of one request.
	answer func(*review) *verdict
)

// hooks are the admission webhooks of one case, each at a path of one server. By default they are
// called for ConfigMaps that are created in the case's namespace.
type hooks struct {
	*suite.T // for the control plane that calls them
	maps     *suite.ConfigMaps
	server   *webhook.Admission
}

// call is one call of a hook.
type call struct {
	hook    string
	request *review
}

// newHooks serves hooks to the control plane that the cases with webhooks share.
func newHooks(ctx context.Context, t *suite.T) *hooks {
	_, beside := t.Shared(ctx, "admission")
	return &hooks{T: beside, maps: beside.ConfigMaps(ctx), server: suite.Serve(beside, "hooks", webhook.ServeAdmission)}
}

// at is what a webhook configuration says to reach a hook.
func (h *hooks) at(hook string) registrationv1.WebhookClientConfig {
	return h.server.ClientConfig("/" + hook)
}

// says decides how a hook answers from now on. A hook that it was not called for allows everything.
func (h *hooks) says(hook string, by answer) {
	h.server.Requests.Use(webhook.AdmissionRule{When: to(hook),
		Answer: func(_ context.Context, r webhook.AdmissionRequest) (verdict, error) {
			return *by(&r.AdmissionRequest), nil
		}})
}

// silence has a hook never answer.
func (h *hooks) silence(hook string) { h.server.Requests.Hold(to(hook)) }

// to matches the calls of a hook.
func to(hook string) func(webhook.AdmissionRequest) bool {
	return func(r webhook.AdmissionRequest) bool { return r.HTTP.Path == "/"+hook }
}

// about returns the calls about objects of a name, oldest first.
func (h *hooks) about(name string) []call {
	var found []call
	for _, c := range h.server.Requests.Calls() {
		if c.Request.Name == name {
			found = append(found, call{strings.TrimPrefix(c.Request.HTTP.Path, "/"), &c.Request.AdmissionRequest})
		}
	}
	return found
}

// asked returns the hooks that were called about an object, in order.
func (h *hooks) asked(name string) []string {
	names := []string{}
	for _, c := range h.about(name) {
		names = append(names, c.hook)
	}
	return names
}

func allow(warnings ...string) answer {
	return func(*review) *verdict { return &verdict{Allowed: true, Warnings: warnings} }
}

func deny(status *metav1.Status) answer {
	return func(*review) *verdict { return &verdict{Result: status} }
}

// patch allows with a JSON patch.
func patch(text string) answer {
	return func(*review) *verdict {
		jsonPatch := admissionv1.PatchTypeJSONPatch
		return &verdict{Allowed: true, Patch: []byte(text), PatchType: &jsonPatch}
	}
}

// fullName is the name of a webhook.
func fullName(hook string) string { return hook + suite.GroupSuffix }

// own selects the case's namespace.
func (h *hooks) own() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: h.maps.Namespace}}
}

// validating is a webhook that is called when ConfigMaps are created.
func (h *hooks) validating(hook string,
	change ...func(*registrationv1.ValidatingWebhook)) registrationv1.ValidatingWebhook {
	none, ten := registrationv1.SideEffectClassNone, int32(10)
	registered := registrationv1.ValidatingWebhook{
		Name: fullName(hook), ClientConfig: h.at(hook), NamespaceSelector: h.own(),
		Rules: []registrationv1.RuleWithOperations{
			suite.WebhookRule("", "v1", "configmaps", registrationv1.Create)},
		SideEffects: &none, TimeoutSeconds: &ten, AdmissionReviewVersions: []string{"v1"},
	}
	for _, f := range change {
		f(&registered)
	}
	return registered
}

// validate registers validating webhooks, and waits until they are asked.
func (h *hooks) validate(ctx context.Context, webhooks ...registrationv1.ValidatingWebhook) {
	h.register(ctx, webhooks...)
	for _, registered := range webhooks {
		h.active(ctx, strings.TrimSuffix(registered.Name, suite.GroupSuffix))
	}
}

// register registers validating webhooks.
func (h *hooks) register(ctx context.Context, webhooks ...registrationv1.ValidatingWebhook) {
	configuration := &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: h.Name},
		Webhooks: webhooks}
	suite.Create(ctx, h.T, h.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create, configuration)
}

// mutate registers one mutating webhook in a configuration of its own, and waits until it is
// asked. The configurations are in the order of their hooks' names.
func (h *hooks) mutate(ctx context.Context, hook string, change ...func(*registrationv1.MutatingWebhook)) {
	v := h.validating(hook)
	registered := registrationv1.MutatingWebhook{
		Name: v.Name, ClientConfig: v.ClientConfig, NamespaceSelector: v.NamespaceSelector, Rules: v.Rules,
		SideEffects: v.SideEffects, TimeoutSeconds: v.TimeoutSeconds,
		AdmissionReviewVersions: v.AdmissionReviewVersions,
	}
	for _, f := range change {
		f(&registered)
	}
	configuration := &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: h.Name + "-" + hook},
		Webhooks:   []registrationv1.MutatingWebhook{registered},
	}
	suite.Create(ctx, h.T, h.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Create, configuration)
	h.active(ctx, hook)
}

// probeName is the name of the ConfigMap that probe sends.
const probeName = "probe"

// probe creates a ConfigMap as a dry run: webhooks are called, and nothing is stored.
func (h *hooks) probe(ctx context.Context) error {
	return suite.ErrorOf(h.maps.Create(ctx, h.maps.Object(probeName, "first"), suite.DryRun))
}

// active waits until the server knows a webhook, which it learns from a watch of its own.
func (h *hooks) active(ctx context.Context, hook string) {
	h.Eventually(ctx, func() bool {
		_ = h.probe(ctx)
		return slices.Contains(h.asked(probeName), hook)
	}).Should(gomega.BeTrue(), "webhook %s is not called", hook)
}

// make creates a ConfigMap.
func (h *hooks) make(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return h.maps.Create(ctx, h.maps.Object(name, "first"), metav1.CreateOptions{})
}

// post creates a ConfigMap and returns the whole answer.
func (h *hooks) post(ctx context.Context, name string) suite.Answer {
	return h.Ask(ctx, suite.Request{Method: http.MethodPost, Path: h.maps.Path(), Body: h.maps.Object(name, "first")})
}

// absent asserts that an object was not stored.
func (h *hooks) absent(ctx context.Context, names ...string) {
	for _, name := range names {
		_, err := h.maps.Get(ctx, name, metav1.GetOptions{})
		h.Expect(err).To(suite.BeStatus(suite.NotFound), "ConfigMap %s", name)
	}
}
