package consumer

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// noSalt is an admission webhook as its author writes it: it refuses config maps with
// salt in them.
func noSalt(w http.ResponseWriter, req *http.Request) {
	var review admissionv1.AdmissionReview
	var object corev1.ConfigMap
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if _, salted := object.Data["salt"]; salted {
		review.Response.Allowed = false
		review.Response.Result = &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "salt melts snow"}
	}
	_ = json.NewEncoder(w).Encode(review)
}

// TestWebhook asks the webhook by the API server's own code, in memory and in virtual
// time: what it refuses, and what becomes of a request when it is too slow.
func TestWebhook(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		hook, err := cp.Webhooks().Serve(http.HandlerFunc(noSalt))
		if err != nil {
			t.Fatal(err)
		}
		none, timeout, fail := admissionregistrationv1.SideEffectClassNone, int32(5), admissionregistrationv1.Fail
		client := kubernetes.NewForConfigOrDie(cp.Config())
		_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "salt"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "salt.example.com", ClientConfig: hook.ClientConfig("/validate"), AdmissionReviewVersions: []string{"v1"},
				SideEffects: &none, TimeoutSeconds: &timeout, FailurePolicy: &fail,
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}},
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cp.Settle(t.Context()); err != nil { // until the server has heard of it
			t.Fatal(err)
		}
		create := func(name, what string) error {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{what: "a pinch"}}
			_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{})
			return err
		}
		if err := create("soup", "salt"); !apierrors.IsForbidden(err) {
			t.Errorf("salt: error %v, want it forbidden", err)
		}
		if err := create("tea", "sugar"); err != nil {
			t.Errorf("sugar: %v", err)
		}

		slow, err := cp.Faults().Inject("delay webhook/salt.example.com by=1m")
		if err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if err := create("coffee", "sugar"); err == nil || time.Since(before) > 6*time.Second {
			t.Errorf("a webhook that takes a minute: error %v after %s, want one after five seconds", err, time.Since(before))
		}
		slow.Remove()
		if err := create("coffee", "sugar"); err != nil {
			t.Errorf("the webhook is itself again: %v", err)
		}
	})
}
