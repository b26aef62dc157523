package controllers_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllers"
	"snowglobe.test/envtest/nodes"
)

// A cluster on which a Deployment rolls out. As it needs a test, it is only compiled.
func Example() {
	_ = func(t *testing.T) {
		envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
			controllers.Start(t, cp)
			controllers.StartScheduler(t, cp)
			nodes.Start(t, cp.Config(), nodes.Config{Count: 3})

			list, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 3 {
				t.Errorf("%d nodes, %v", len(list.Items), err)
			}
		})
	}
}
