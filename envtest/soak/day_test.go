//go:build soak

package soak_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		_, err := client.CoordinationV1().Leases("default").Create(ctx, lease, metav1.CreateOptions{})
		require.NoError(t, err)
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "dawn"},
			InvolvedObject: corev1.ObjectReference{Kind: "Lease", Namespace: "default", Name: "day"},
		}
		_, err = client.CoreV1().Events("default").Create(ctx, event, metav1.CreateOptions{})
		require.NoError(t, err)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
		_, err = client.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{})
		require.NoError(t, err)
		old := newToken(t, client)
		require.NoError(t, whoAmI(ctx, cp, old), "a fresh token is refused")
		_, err = client.CoreV1().Events("default").Get(ctx, "dawn", metav1.GetOptions{})
		require.NoError(t, err, "the event is gone at once")

		morning := time.Now()
		time.Sleep(24 * time.Hour)
		assert.Equal(t, 24*time.Hour, time.Since(morning), "what passed")
		_, err = client.CoreV1().Events("default").Get(ctx, "dawn", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "the event outlived its TTL: %v", err)
		_, err = client.CoordinationV1().Leases("default").Get(ctx, "day", metav1.GetOptions{})
		assert.NoError(t, err, "the lease is gone")
		err = whoAmI(ctx, cp, old)
		assert.True(t, apierrors.IsUnauthorized(err), "a token of yesterday still counts: %v", err)
		assert.NoError(t, whoAmI(ctx, cp, newToken(t, client)), "the renewed token is refused")
	})
}

func newToken(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	hour := int64(time.Hour / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	response, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "robot", request, metav1.CreateOptions{})
	require.NoError(t, err)
	return response.Status.Token
}

func whoAmI(ctx context.Context, cp *envtest.ControlPlane, token string) error {
	config := cp.Config()
	config.BearerToken = token
	review := &authenticationv1.SelfSubjectReview{}
	_, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(ctx, review, metav1.CreateOptions{})
	return err
}
