package adopt

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest/client"
)

// TestAdoptAfterConflict changes the ConfigMap after Adopt has read it, and before its update.
func TestAdoptAfterConflict(t *testing.T) {
	cp := client.Start(t)
	clientset := kubernetes.NewForConfigOrDie(cp.Config())
	configMaps := clientset.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	flake := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flake"}}
	if _, err := configMaps.Create(t.Context(), flake, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	gate, err := cp.Gate(t.Context(), "http/update resource=configmaps name=default/flake")
	if err != nil {
		t.Fatal(err)
	}
	adopted := make(chan error, 1)
	go func() { adopted <- Adopt(t.Context(), clientset, "flake", "jane") }()
	if _, err := gate.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	melted := []byte(`{"data": {"melted": "yes"}}`)
	if _, err := configMaps.Patch(t.Context(), "flake", types.MergePatchType, melted, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := gate.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-adopted; err != nil {
		t.Fatal(err)
	}
	now, err := configMaps.Get(t.Context(), "flake", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now.Annotations[Annotation] != "jane" || now.Data["melted"] != "yes" {
		t.Errorf("one of the changes is lost: %v", now)
	}
}
