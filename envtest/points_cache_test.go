package envtest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func init() {
	pointTests["cache/<resource> ready"] = pointTest{show: showCacheReady, onEtcd: true, opts: []envtest.Option{envtest.WithCRDs(widgetCRD())}}
	pointTests["cache/<resource> event"] = pointTest{show: showCacheEvent, onEtcd: true}
	pointTests["cache/<resource> progress"] = pointTest{show: showCacheProgress, onEtcd: true}
}

// cached returns the names that a list of ConfigMaps from the watch cache has.
func cached(t *testing.T, cp *envtest.ControlPlane) (names []string) {
	t.Helper()
	list, err := core(cp).ConfigMaps("default").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(t, err)
	for i := range list.Items {
		if list.Items[i].Name != "kube-root-ca.crt" {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// watchConfigMaps watches from the cache, from now on.
func watchConfigMaps(t *testing.T, cp *envtest.ControlPlane) watch.Interface {
	t.Helper()
	client := core(cp).ConfigMaps("default")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	watching, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	t.Cleanup(watching.Stop)
	return watching
}

// showCacheReady lists a custom resource, whose watch cache is made for the first
// request and is not ready before the rules let it.
func showCacheReady(t *testing.T, cp *envtest.ControlPlane) {
	gate, err := cp.Gate("cache/widgets.example.com verb=ready")
	require.NoError(t, err)
	list := func(retries int) error {
		return core(cp).RESTClient().Get().AbsPath("/apis/example.com/v1/widgets").Param("resourceVersion", "0").MaxRetries(retries).Do(t.Context()).Error()
	}
	err = list(0)
	assert.True(t, apierrors.IsTooManyRequests(err), "not ready: %v", err)
	waiting, err := gate.Await(t.Context(), 1)
	require.NoError(t, err)
	assert.NotZero(t, waiting[0].Revision)
	assert.Equal(t, "cache/widgets.example.com ready on apiserver-0", waiting[0].String())
	gate.Release(1)
	assert.NoError(t, list(10), "ready")
	gate.Remove()

	remove := addRule(t, cp, "drop cache/widgets.example.com verb=ready")
	replaceWidgets(t, cp)
	gate, err = cp.Gate("cache/widgets.example.com verb=event name=default/a")
	require.NoError(t, err)
	err = list(0)
	assert.True(t, apierrors.IsTooManyRequests(err), "made anew: %v", err)
	createWidget(t.Context(), t, cp.Config(), "a")
	_, err = gate.Await(t.Context(), 1) // behind what was dropped
	require.NoError(t, err)
	err = list(0)
	assert.True(t, apierrors.IsTooManyRequests(err), "never ready: %v", err)
	remove()
}
