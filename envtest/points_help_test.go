package envtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func core(cp *envtest.ControlPlane) typedcorev1.CoreV1Interface {
	return kubernetes.NewForConfigOrDie(cp.Config()).CoreV1()
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func create(t testing.TB, cp *envtest.ControlPlane, name string) *corev1.ConfigMap {
	t.Helper()
	made, err := core(cp).ConfigMaps("default").Create(t.Context(), configMap(name), metav1.CreateOptions{})
	require.NoError(t, err)
	return made
}

func createEvent(ctx context.Context, cp *envtest.ControlPlane, name string) error {
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name},
		InvolvedObject: corev1.ObjectReference{Namespace: "default", Name: "absent"},
	}
	_, err := core(cp).Events("default").Create(ctx, event, metav1.CreateOptions{})
	return err
}

// awaitCache waits until the watch cache has what the store has of a ConfigMap:
// from an older one, upstream's first try to write would fail.
func awaitCache(t testing.TB, cp *envtest.ControlPlane, name string) {
	t.Helper()
	client := core(cp).ConfigMaps("default")
	stored, err := client.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	_, err = client.Get(t.Context(), name, metav1.GetOptions{ResourceVersion: stored.ResourceVersion})
	require.NoError(t, err)
}

// awaitHeld waits until an operation waits at a gate, for no longer than
// anything does that the server does by itself.
func awaitHeld(t testing.TB, gate *fault.Gate) []fault.Operation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	waiting, err := gate.Await(ctx, 1)
	require.NoError(t, err)
	return waiting
}

// addRule adds a rule, and returns what removes it when it has fired.
func addRule(t testing.TB, cp *envtest.ControlPlane, text string) (remove func()) {
	t.Helper()
	rule, err := fault.Parse(text, nil)
	require.NoError(t, err)
	added, err := cp.Faults().Add(rule)
	require.NoError(t, err)
	return func() {
		t.Helper()
		assert.NotZero(t, added[0].Fired(), "the rule %q has not fired", text)
		added[0].Remove()
	}
}
