package envtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
)

// TestCertificates has users of one name, each with a connection of its own: a certificate
// says the groups, holds for as long as it says, and is no other user's.
func TestCertificates(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		can := func(config *rest.Config) error {
			_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
			return err
		}
		byToken := cp.Config(envtest.User("jane"))
		admin := cp.Config(envtest.User("jane", "system:masters"), envtest.Certificate(time.Hour))
		ungrouped := cp.NewClient().Config(envtest.User("jane"), envtest.Certificate(2*time.Hour))
		assert.NoError(t, can(admin))
		assert.True(t, apierrors.IsForbidden(can(ungrouped)))
		assert.True(t, apierrors.IsForbidden(can(byToken)))
		time.Sleep(time.Hour + time.Second)
		assert.True(t, apierrors.IsUnauthorized(can(admin)))
		assert.True(t, apierrors.IsForbidden(can(ungrouped)))
	})
}
