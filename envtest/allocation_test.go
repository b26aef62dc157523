package envtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// TestServicesAtOnce creates Services side by side in virtual time. Upstream's allocator holds
// a mutex while it makes the IPAddress of one of them, and the others wait for that mutex.
func TestServicesAtOnce(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		services := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Services(metav1.NamespaceDefault)
		var creating errgroup.Group
		for i := range 20 {
			creating.Go(func() error {
				_, err := services.Create(t.Context(), &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("service-%d", i)},
					Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
				}, metav1.CreateOptions{})
				return err
			})
		}
		assert.NoError(t, creating.Wait())
	})
}
