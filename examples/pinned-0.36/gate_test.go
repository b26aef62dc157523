package pinned

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest/client"
)

// TestNotYetCommitted reads while a create waits at the store: the object is not there before
// the store has it.
func TestNotYetCommitted(t *testing.T) {
	cp := client.Start(t)
	configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps(metav1.NamespaceDefault)
	gate, err := cp.Gate(t.Context(), "store/put resource=configmaps name=default/flake")
	if err != nil {
		t.Fatal(err)
	}
	created := make(chan error, 1)
	go func() {
		_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flake"}}, metav1.CreateOptions{})
		created <- err
	}()
	if _, err := gate.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Get(t.Context(), "flake", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("before the commit: %v", err)
	}
	if err := gate.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Get(t.Context(), "flake", metav1.GetOptions{}); err != nil {
		t.Errorf("after the commit: %v", err)
	}
}

// TestSnapshot goes back to a state, and has the trace of what led there.
func TestSnapshot(t *testing.T) {
	cp := client.Start(t)
	configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps(metav1.NamespaceDefault)
	empty, err := cp.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flake"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cp.Restore(t.Context(), empty); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Get(t.Context(), "flake", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after Restore: %v", err)
	}
	trace, err := cp.Trace(t.Context(), client.TraceText)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(trace, "/configmaps/flake") {
		t.Errorf("the trace does not tell of flake:\n%s", trace)
	}
}
