package envtest_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// TestHoldWatchCache keeps a cache behind the store: a list that accepts any
// version is stale, a consistent one is not.
func TestHoldWatchCache(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
		count := func(version string) int {
			list, err := configMaps.List(t.Context(), metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			return len(list.Items)
		}
		resource := schema.GroupResource{Resource: "configmaps"}
		before := count("")
		if err := cp.HoldWatchCache(resource); err != nil {
			t.Fatal(err)
		}
		if err := cp.HoldWatchCache(resource); err == nil {
			t.Error("a cache was held twice")
		}
		_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if stale := count("0"); stale != before {
			t.Errorf("a list from the held cache has %d items, want the %d of before", stale, before)
		}
		if fresh := count(""); fresh != before+1 {
			t.Errorf("a consistent list has %d items, want %d", fresh, before+1)
		}
		if err := cp.ReleaseWatchCache(resource); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if released := count("0"); released != before+1 {
			t.Errorf("after the release the cache has %d items, want %d", released, before+1)
		}
	})
}
