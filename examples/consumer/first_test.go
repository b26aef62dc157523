package consumer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

func TestFirst(t *testing.T) {
	cp := envtest.Start(t) // a whole kube-apiserver, gone when the test ends
	client := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
	snow := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "snow"}}
	created, err := client.Create(t.Context(), snow, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s fell at resourceVersion %s", created.Name, created.ResourceVersion)
}
