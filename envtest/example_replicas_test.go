package envtest_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// A client behind a load balancer goes on when the server it was at crashes.
func ExampleWithReplicas() {
	err := envtest.SimulateContext(func(ctx context.Context, cp *envtest.ControlPlane) error {
		client := cp.NewClient()
		namespaces := kubernetes.NewForConfigOrDie(client.Config()).CoreV1().Namespaces()
		for range 2 {
			if _, err := namespaces.Get(ctx, "default", metav1.GetOptions{}); err != nil {
				return err
			}
			fmt.Println(client.Server().Name())
			if err := client.Server().Crash(ctx); err != nil {
				return err
			}
		}
		return cp.Servers()[0].Restart(ctx)
	}, envtest.WithReplicas(2))
	fmt.Println(err)
	// Output:
	// apiserver-0
	// apiserver-1
	// <nil>
}
