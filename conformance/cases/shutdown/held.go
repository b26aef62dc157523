package shutdown

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

// held is a request in flight: one that an admission webhook does not answer yet.
type held struct {
	asked   chan struct{} // closed when the webhook is asked about it
	release func()
	seen    atomic.Int64 // reviews
	answer  chan struct{}
	once    sync.Once
}

// holdAdmission registers a webhook that holds requests about the ConfigMap slow in the
// case's namespace, and allows all others. What a server's own rules hold is let go when the
// server begins to stop; what a webhook holds is not.
func holdAdmission(ctx context.Context, t *suite.T, cp *envtest.ControlPlane) *held {
	h := &held{asked: make(chan struct{}), answer: make(chan struct{})}
	h.release = sync.OnceFunc(func() { close(h.answer) })
	served, err := cp.Webhooks().Serve(h)
	t.Must(err, "serve a webhook")
	maps, none := t.ConfigMaps(ctx), registrationv1.SideEffectClassNone
	suite.Create(ctx, t, t.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create,
		&registrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: t.Name},
			Webhooks: []registrationv1.ValidatingWebhook{{
				Name: "held.conformance.snowglobe.test", ClientConfig: served.ClientConfig("/"),
				SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				NamespaceSelector: metav1.SetAsLabelSelector(labels.Set{corev1.LabelMetadataName: maps.Namespace}),
				Rules: []registrationv1.RuleWithOperations{{
					Operations: []registrationv1.OperationType{registrationv1.Create},
					Rule: registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
						Resources: []string{"configmaps"}},
				}},
			}},
		})
	t.Eventually(ctx, func() int64 {
		_, err := maps.Create(ctx, maps.Object("probe", ""), suite.DryRun)
		t.Must(err, "create a ConfigMap as a dry run")
		return h.seen.Load()
	}).Should(gomega.BeNumerically(">", 0), "the webhook is not asked")
	return h
}

// ServeHTTP implements http.Handler.
func (h *held) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	h.seen.Add(1)
	if review.Request.Name == "slow" {
		h.once.Do(func() { close(h.asked) })
		select {
		case <-h.answer:
		case <-req.Context().Done(): // the server asks no more
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{
		TypeMeta: review.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}})
}
