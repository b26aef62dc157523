package envtest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// A control plane in a program, or in TestMain.
func ExampleLaunch() {
	ctx := context.Background()
	cp, err := envtest.Launch(ctx)
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(cp.Config())
	namespace, err := client.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(namespace.Name, namespace.Status.Phase)
	if err := cp.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: kube-system Active
}

// A request as a user who may do nothing yet.
func ExampleUser() {
	ctx := context.Background()
	cp, err := envtest.Launch(ctx)
	if err != nil {
		log.Fatal(err)
	}
	jane := kubernetes.NewForConfigOrDie(cp.Config(envtest.User("jane", "developers")))
	_, err = jane.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	fmt.Println(err)
	if err := cp.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "default"
}

// An hour passes at once.
func ExampleSimulateContext() {
	err := envtest.SimulateContext(func(ctx context.Context, cp *envtest.ControlPlane) error {
		leases := kubernetes.NewForConfigOrDie(cp.Config()).CoordinationV1().Leases("default")
		before, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		time.Sleep(time.Hour)
		after := metav1.Now()
		fmt.Println(after.Sub(before.CreationTimestamp.Time).Round(time.Minute))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 1h0m0s
}

// A hook is held until the test has seen what happens without it.
func ExampleWithFaults_hold() {
	ctx := context.Background()
	cp, err := envtest.Launch(ctx, envtest.WithFaults("hold hook/rbac/bootstrap-roles"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cp.Faults().Held()[0])
	if err := cp.Faults().Release("hook/rbac/bootstrap-roles"); err != nil {
		log.Fatal(err)
	}
	if err := cp.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cp.Faults().Held())
	if err := cp.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// hook/rbac/bootstrap-roles post-start on apiserver-0
	// []
}
