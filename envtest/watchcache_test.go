package envtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// TestWatchCacheWindow writes, in three minutes, more than a watch cache keeps at
// least: a watch can begin where all began only if the window is as wide.
func TestWatchCacheWindow(t *testing.T) {
	for name, test := range map[string]struct {
		opts []envtest.Option
		want string
	}{
		"default": {nil, "ERROR Expired"},
		"wide":    {[]envtest.Option{envtest.WithWatchCacheWindow(configMaps.GroupResource(), time.Hour)}, "ADDED w-0"},
	} {
		t.Run(name, func(t *testing.T) {
			envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
				first := create(t, cp, "first")
				for i := range 180 {
					create(t, cp, fmt.Sprint("w-", i))
					time.Sleep(time.Second)
				}
				if got := next(t, watchFrom(t, cp, first.ResourceVersion)); got != test.want {
					t.Errorf("a watch of three minutes ago begins with %q, want %q", got, test.want)
				}
			}, test.opts...)
		})
	}
}

// TestWatchCacheWindowRefuses has a reason for each refusal.
func TestWatchCacheWindowRefuses(t *testing.T) {
	for want, opt := range map[string]envtest.Option{
		"upstream takes no less than 1m15s": envtest.WithWatchCacheWindow(configMaps.GroupResource(), time.Minute),
		"of confmaps: there is no such":     envtest.WithWatchCacheWindow(schema.GroupResource{Resource: "confmaps"}, time.Hour),
	} {
		if _, err := envtest.Launch(t.Context(), opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// TestFrozenWatchCache keeps a cache behind the store: a list that accepts any
// version is stale, a consistent one is not.
func TestFrozenWatchCache(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
		count := func(version string) int {
			list, err := configMaps.List(t.Context(), metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			return len(list.Items)
		}
		before := count("")
		frozen := inject(t, cp, "freeze cache/configmaps")
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
		frozen.Remove()
		time.Sleep(time.Second)
		if released := count("0"); released != before+1 {
			t.Errorf("after the release the cache has %d items, want %d", released, before+1)
		}
	})
}
