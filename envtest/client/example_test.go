package client_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"snowglobe.test/envtest/client"
)

// Each test has a control plane of its own, of the one process that all packages share.
// That takes a minute to build at first, so this example is only compiled.
func Example() {
	_ = func(t *testing.T) {
		cp := client.Start(t, client.WithCRDPaths("../../config/crd"))
		widgets := dynamic.NewForConfigOrDie(cp.Config()).Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
		if _, err := widgets.Namespace("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
