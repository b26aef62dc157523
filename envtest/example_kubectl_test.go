package envtest_test

import (
	"context"
	"fmt"
	"strings"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/kubectl"
)

// kubectl waits for ten minutes here, which takes no time.
func ExampleSimulateContext_kubectl() {
	err := envtest.SimulateContext(func(ctx context.Context, cp *envtest.ControlPlane) error {
		manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: snow}\ndata: {flakes: many}\n"
		apply := kubectl.Cmd{Config: cp.Config(), Args: []string{"apply", "-f", "-"}, Stdin: strings.NewReader(manifest)}
		if err := apply.Run(ctx); err != nil {
			return err
		}
		out, err := kubectl.Run(ctx, cp.Config(), "get", "configmap", "snow", "-o", "jsonpath={.data.flakes}")
		fmt.Println(out, err)
		_, err = kubectl.Run(ctx, cp.Config(), "wait", "configmap/snow", "--for=delete", "--timeout=10m")
		fmt.Println(err)
		return nil
	})
	fmt.Println(err)
	// Output:
	// many <nil>
	// error: timed out waiting for the condition on configmaps/snow
	// <nil>
}
