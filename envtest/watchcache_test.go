package envtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
				assert.Equal(t, test.want, next(t, watchFrom(t, cp, first.ResourceVersion)), "what a watch of three minutes ago begins with")
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
		_, err := envtest.Launch(t.Context(), opt)
		assert.ErrorContains(t, err, want)
	}
}

// TestFrozenWatchCache keeps a cache behind the store: a list that accepts any
// version is stale, a consistent one is not.
func TestFrozenWatchCache(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
		count := func(version string) int {
			list, err := configMaps.List(t.Context(), metav1.ListOptions{ResourceVersion: version})
			require.NoError(t, err)
			return len(list.Items)
		}
		before := count("")
		frozen := inject(t, cp, "freeze cache/configmaps")
		_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Equal(t, before, count("0"), "items of a list from the held cache")
		assert.Equal(t, before+1, count(""), "items of a consistent list")
		frozen.Remove()
		time.Sleep(time.Second)
		assert.Equal(t, before+1, count("0"), "items of the cache after the release")
	})
}
