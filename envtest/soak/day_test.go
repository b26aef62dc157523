package soak_test

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// TestSimulateDay lives through a day: an Event goes by its TTL, a Lease stays,
// a service-account token expires and is renewed.
func TestSimulateDay(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ctx := t.Context()
		client := kubernetes.NewForConfigOrDie(cp.Config())
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "day"}}
		if _, err := client.CoordinationV1().Leases("default").Create(ctx, lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "dawn"},
			InvolvedObject: corev1.ObjectReference{Kind: "Lease", Namespace: "default", Name: "day"},
		}
		if _, err := client.CoreV1().Events("default").Create(ctx, event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
		if _, err := client.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		old := newToken(t, client)
		if err := whoAmI(ctx, cp, old); err != nil {
			t.Fatalf("a fresh token is refused: %v", err)
		}
		if _, err := client.CoreV1().Events("default").Get(ctx, "dawn", metav1.GetOptions{}); err != nil {
			t.Fatalf("the event is gone at once: %v", err)
		}

		morning := time.Now()
		time.Sleep(24 * time.Hour)
		if passed := time.Since(morning); passed != 24*time.Hour {
			t.Errorf("%s passed", passed)
		}
		if _, err := client.CoreV1().Events("default").Get(ctx, "dawn", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the event outlived its TTL: %v", err)
		}
		if _, err := client.CoordinationV1().Leases("default").Get(ctx, "day", metav1.GetOptions{}); err != nil {
			t.Errorf("the lease is gone: %v", err)
		}
		if err := whoAmI(ctx, cp, old); !apierrors.IsUnauthorized(err) {
			t.Errorf("a token of yesterday still counts: %v", err)
		}
		if err := whoAmI(ctx, cp, newToken(t, client)); err != nil {
			t.Errorf("the renewed token is refused: %v", err)
		}
	})
}

func newToken(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	hour := int64(time.Hour / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	response, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "robot", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return response.Status.Token
}

func whoAmI(ctx context.Context, cp *envtest.ControlPlane, token string) error {
	config := cp.Config()
	config.BearerToken = token
	review := &authenticationv1.SelfSubjectReview{}
	_, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(ctx, review, metav1.CreateOptions{})
	return err
}
