package shutdown

import (
	"context"

	"github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
)

// holdAdmission registers a webhook that holds requests about the ConfigMap slow in the
// case's namespace at a gate, and allows all others. What a server's own rules hold is let go
// when the server begins to stop; what a webhook holds is not.
func holdAdmission(ctx context.Context, t *suite.T) *stub.Gate {
	hook := suite.Serve(t, "held", webhook.ServeAdmission)
	slow := hook.Requests.Hold(func(r webhook.AdmissionRequest) bool { return r.Name == "slow" })
	t.Cleanup(func(context.Context) error { slow.Open(); return nil })
	maps, none := t.ConfigMaps(ctx), registrationv1.SideEffectClassNone
	suite.Create(ctx, t, t.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create,
		&registrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: t.Name},
			Webhooks: []registrationv1.ValidatingWebhook{{
				Name: "held.conformance.snowglobe.test", ClientConfig: hook.ClientConfig("/"),
				SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				NamespaceSelector: metav1.SetAsLabelSelector(labels.Set{corev1.LabelMetadataName: maps.Namespace}),
				Rules: []registrationv1.RuleWithOperations{
					suite.WebhookRule("", "v1", "configmaps", registrationv1.Create)},
			}},
		})
	t.Eventually(ctx, func() int {
		_, err := maps.Create(ctx, maps.Object("probe", ""), suite.DryRun)
		t.Must(err, "create a ConfigMap as a dry run")
		return len(hook.Requests.Calls())
	}).Should(gomega.BeNumerically(">", 0), "the webhook is not asked")
	return slow
}
