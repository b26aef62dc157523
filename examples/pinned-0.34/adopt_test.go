package adopt

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest/client"
)

// TestAdoptAfterConflicts has the API server answer 409 twice.
func TestAdoptAfterConflicts(t *testing.T) {
	cp := client.Start(t, client.WithFaults("fail http/update resource=configmaps name=default/flake with=409 times=2"))
	clientset := kubernetes.NewForConfigOrDie(cp.Config())
	configMaps := clientset.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	flake := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flake"}}
	if _, err := configMaps.Create(t.Context(), flake, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Adopt(t.Context(), clientset, "flake", "jane"); err != nil {
		t.Fatal(err)
	}
	adopted, err := configMaps.Get(t.Context(), "flake", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if by := adopted.Annotations[Annotation]; by != "jane" {
		t.Errorf("adopted by %q", by)
	}
}
