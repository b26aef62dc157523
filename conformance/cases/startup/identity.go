package startup

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/fakes/webhook"
)

var identityCases = []suite.Case{
	{ID: "S20/version-names-what-it-emulates", Test: versionNamesWhatItEmulates,
		Source: "KEP-4330; k8s.io/apimachinery/pkg/version/types.go; " +
			"k8s.io/apiserver/pkg/util/compatibility/registry.go",
		Promise: "/version reports the release it emulates, by default its own, and the oldest it is compatible " +
			"with, by default the one before."},
	{ID: "S20/version-is-for-everybody", Level: suite.Core, Failure: true, Test: versionIsForEverybody,
		Source:  "k8s.io/apiserver/pkg/server/routes/version.go, Install",
		Promise: "/version needs no permission and takes no other method than GET: 405."},
	{ID: "S20/storage-version-hash-tells-storage-apart", Level: suite.Core, Test: storageVersionHash,
		Source: "k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go, StorageVersionHash",
		Promise: "Discovery gives each stored resource a hash of the group, version and kind that it is stored as: " +
			"the same in each version of a resource, and none for subresources."},
	{ID: "S20/equivalent-resources-share-their-webhooks", Level: suite.Core, Needs: suite.Launch,
		Test: equivalentResources,
		Source: "k8s.io/apimachinery/pkg/runtime/mapper.go, EquivalentResourceRegistry; " +
			"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules",
		Promise: "A webhook with matchPolicy Equivalent for one version of a resource is called for another, with " +
			"the object converted to its own and the request's version told; with Exact it is not."},
	{ID: "S20/unserved-version-is-not-equivalent", Failure: true, Needs: suite.Launch, Test: unservedIsNotEquivalent,
		Source: "k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go, ShouldCallHook",
		Promise: "A rule for a version that a custom resource does not serve matches no request of another version, " +
			"and a webhook's refusal of an equivalent one is the answer."},
}

func versionNamesWhatItEmulates(ctx context.Context, t *suite.T) {
	info := versionOf(ctx, t)
	minor, err := strconv.Atoi(strings.TrimSuffix(info.Minor, "+"))
	t.Must(err, "minor %q", info.Minor)
	t.Expect(info.EmulationMajor + "." + info.EmulationMinor).To(gomega.Equal(info.Major + "." + strconv.Itoa(minor)))
	t.Expect(info.MinCompatibilityMajor + "." + info.MinCompatibilityMinor).
		To(gomega.Equal(info.Major + "." + strconv.Itoa(minor-1)))
}

func versionIsForEverybody(ctx context.Context, t *suite.T) {
	stranger := t.As("system:anonymous", "system:unauthenticated")
	t.Expect(versionOf(ctx, stranger)).To(gomega.Equal(versionOf(ctx, t)))
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		t.AnsweredTo(ctx, suite.Request{Path: "/version", Method: method}, http.StatusMethodNotAllowed)
	}
}

func storageVersionHash(ctx context.Context, t *suite.T) {
	hash := func(path, resource string) string {
		list := suite.GetJSON[metav1.APIResourceList](ctx, t, path)
		for _, r := range list.APIResources {
			if r.Name == resource {
				return r.StorageVersionHash
			}
		}
		return "no such resource"
	}
	of := func(stored string) string {
		sum := sha256.Sum256([]byte(stored))
		return base64.StdEncoding.EncodeToString(sum[:8])
	}
	t.Expect(hash("/apis/apps/v1", "deployments")).To(gomega.Equal(of("apps/v1/Deployment")))
	t.Expect(hash("/apis/apps/v1", "deployments/status")).To(gomega.BeEmpty())
	t.Expect(hash("/api/v1", "pods")).To(gomega.Equal(of("/v1/Pod")))
	v1, v2 := hash("/apis/autoscaling/v1", "horizontalpodautoscalers"), hash("/apis/autoscaling/v2",
		"horizontalpodautoscalers")
	t.Expect([]string{v1, v2}).To(gomega.HaveEach(of("autoscaling/v2/HorizontalPodAutoscaler")))
}

// refuse lets the webhook "review" refuse what it is asked about.
func refuse(hook *webhook.Admission) {
	no := webhook.AdmissionAnswer{Result: &metav1.Status{Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: "not this one"}}
	hook.Requests.Use(webhook.AdmissionRule{
		When:   func(r webhook.AdmissionRequest) bool { return r.HTTP.Path == "/review" },
		Answer: func(context.Context, webhook.AdmissionRequest) (webhook.AdmissionAnswer, error) { return no, nil },
	})
}

// asked is what a webhook, which is at a path, was asked about an object.
func asked(hook *webhook.Admission, path, name string) (versions []string) {
	for _, call := range hook.Requests.Calls() {
		if r := call.Request; r.HTTP.Path == path && r.Name == name {
			versions = append(versions, r.Resource.Version+" for "+r.RequestResource.Version)
		}
	}
	return versions
}

// reviewed installs Widgets with v1 and v2, and a webhook for one version of them. When it
// returns, the server knows the webhook.
func reviewed(ctx context.Context, beside *suite.T, version string,
	policy admissionregistrationv1.MatchPolicyType) (*suite.Widgets, *webhook.Admission) {
	_, t := beside.Shared(ctx, "identity")
	w := t.Install(ctx, t.WidgetCRD(func(d *suite.CRD) {
		d.Spec.Versions = append(d.Spec.Versions, suite.WidgetVersion("v2", false))
	}))
	served := suite.Serve(t, "reviews", webhook.ServeAdmission)
	hook := func(name, version string,
		policy admissionregistrationv1.MatchPolicyType) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name: name + ".example.com", ClientConfig: served.ClientConfig("/" + name),
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone), MatchPolicy: &policy,
			Rules: []admissionregistrationv1.RuleWithOperations{
				suite.WebhookRule(w.Resource.Group, version, "widgets", admissionregistrationv1.OperationAll)},
		}
	}
	configurations := t.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	suite.Create(ctx, t, configurations.Create, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.Resource.Group},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{hook("canary", "v1", admissionregistrationv1.Exact),
			hook("review", version, policy)},
	})
	t.Eventually(ctx, func() bool {
		_, _ = w.Probe(ctx) // it may be refused
		return len(asked(served, "/canary", "probe")) > 0
	}).Should(gomega.BeTrue(), "the server does not call its webhooks")
	return w, served
}

func equivalentResources(ctx context.Context, beside *suite.T) {
	w, equivalent := reviewed(ctx, beside, "v2", admissionregistrationv1.Equivalent)
	made := w.Make(ctx, "one")
	w.T.Expect(made.GetAPIVersion()).To(gomega.Equal(w.Resource.Group + "/v1"))
	w.T.Expect(asked(equivalent, "/review", "one")).To(gomega.Equal([]string{"v2 for v1"}))
	other, exact := reviewed(ctx, beside, "v2", admissionregistrationv1.Exact)
	other.Make(ctx, "two")
	w.T.Expect(asked(exact, "/review", "two")).To(gomega.BeEmpty())
}

func unservedIsNotEquivalent(ctx context.Context, beside *suite.T) {
	w, unserved := reviewed(ctx, beside, "v9", admissionregistrationv1.Equivalent)
	refuse(unserved)
	w.Make(ctx, "one")
	w.T.Expect(asked(unserved, "/review", "one")).To(gomega.BeEmpty())
	w, refusing := reviewed(ctx, beside, "v2", admissionregistrationv1.Equivalent)
	refuse(refusing)
	_, err := w.TryMake(ctx, "two")
	w.T.Expect(err).To(suite.BeStatus(suite.Forbidden))
	w.T.Expect(err).
		To(gomega.MatchError(gomega.ContainSubstring(`admission webhook "review.example.com" denied the request: ` +
			`not this one`)))
	w.T.Answered(ctx, w.Path+"/two", http.StatusNotFound)
}
