package envtest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func init() {
	pointTests["cache/<resource> ready"] = pointTest{show: showCacheReady, onEtcd: true}
	pointTests["cache/<resource> event"] = pointTest{show: showCacheEvent, onEtcd: true}
	pointTests["cache/<resource> progress"] = pointTest{show: showCacheProgress, onEtcd: true}
}

// cached returns the names that a list of ConfigMaps from the watch cache has.
func cached(t testing.TB, cp *envtest.ControlPlane) (names []string) {
	t.Helper()
	list, err := core(cp).ConfigMaps("default").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(t, err)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// watchConfigMaps watches from the cache, from now on.
func watchConfigMaps(t testing.TB, cp *envtest.ControlPlane) watch.Interface {
	t.Helper()
	list, err := core(cp).ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return watchFrom(t, cp, list.ResourceVersion)
}

func watchFrom(t testing.TB, cp *envtest.ControlPlane, version string) watch.Interface {
	t.Helper()
	watching, err := core(cp).ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	require.NoError(t, err)
	t.Cleanup(watching.Stop)
	return watching
}

// showCacheReady lists a custom resource, whose watch cache is made for the first
// request and is not ready before the rules let it.
func showCacheReady(t testing.TB, cp *envtest.ControlPlane) {
	gate, err := cp.Faults().Gate("cache/widgets.example.com verb=ready")
	require.NoError(t, err)
	list := func(resource string, retries int) error {
		return core(cp).RESTClient().Get().AbsPath("/apis/example.com/v1", resource).Param("resourceVersion", "0").MaxRetries(retries).Do(t.Context()).Error()
	}
	require.NoError(t, cp.InstallCRDs(t.Context(), widgetCRD()))
	err = list("widgets", 0)
	assert.True(t, apierrors.IsTooManyRequests(err), "not ready: %v", err)
	waiting := awaitHeld(t, gate)
	assert.NotZero(t, waiting[0].Revision)
	assert.Equal(t, "cache/widgets.example.com ready on apiserver-0", waiting[0].String())
	gate.Release(1)
	assert.NoError(t, list("widgets", 10), "ready")
	gate.Remove()

	remove := addRule(t, cp, "drop cache/gadgets.example.com verb=ready")
	require.NoError(t, cp.InstallCRDs(t.Context(), gadgetCRD()))
	gate, err = cp.Faults().Gate("cache/gadgets.example.com verb=event name=default/a")
	require.NoError(t, err)
	gadget := `{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}}`
	err = core(cp).RESTClient().Post().AbsPath("/apis/example.com/v1/namespaces/default/gadgets").Body([]byte(gadget)).
		SetHeader("Content-Type", "application/json").Do(t.Context()).Error()
	require.NoError(t, err)
	awaitHeld(t, gate) // behind what was dropped
	err = list("gadgets", 0)
	assert.True(t, apierrors.IsTooManyRequests(err), "never ready: %v", err)
	remove()
}

func gadgetCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := widgetCRD()
	crd.Name = "gadgets.example.com"
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"}
	return crd
}

func showCacheEvent(t testing.TB, cp *envtest.ControlPlane) {
	watching := watchConfigMaps(t, cp)
	create(t, cp, "passed")
	assert.Equal(t, "ADDED passed", next(t, watching))

	gate, err := cp.Faults().Gate("cache/configmaps verb=event name=default/held")
	require.NoError(t, err)
	create(t, cp, "held")
	create(t, cp, "behind")
	waiting := awaitHeld(t, gate)
	assert.NotZero(t, waiting[0].Revision)
	assert.Equal(t, "cache/configmaps event default/held on apiserver-0", waiting[0].String())
	assert.Equal(t, []string{"passed"}, cached(t, cp), "held, and what is behind")
	gate.Open()
	assert.Equal(t, "ADDED held", next(t, watching))
	assert.Equal(t, "ADDED behind", next(t, watching))
	assert.Equal(t, []string{"behind", "held", "passed"}, cached(t, cp))

	remove := addRule(t, cp, "drop cache/configmaps name=default/lost")
	removeToo := addRule(t, cp, "duplicate cache/configmaps name=default/twice")
	create(t, cp, "lost")
	create(t, cp, "twice")
	assert.Equal(t, "ADDED twice", next(t, watching))
	assert.Equal(t, []string{"behind", "held", "passed", "twice"}, cached(t, cp), "what is lost stays lost")
	assert.Equal(t, "MODIFIED twice", next(t, watching), "the cache takes the second for a change")
	remove()
	removeToo()

	remove = addRule(t, cp, "cancel cache/configmaps name=default/cancelled times=1")
	create(t, cp, "cancelled")
	assert.Equal(t, "ADDED cancelled", next(t, watching), "the cache watches again from where it was")
	remove()

	last := create(t, cp, "last")
	assert.Equal(t, "ADDED last", next(t, watching))
	freeze, err := fault.Parse("freeze cache/configmaps at="+last.ResourceVersion, nil)
	require.NoError(t, err)
	frozen, err := cp.Faults().Add(freeze)
	require.NoError(t, err)
	create(t, cp, "later")
	awaitHeld(t, frozen[0].Gate())
	assert.NotContains(t, cached(t, cp), "later")
	frozen[0].Remove()
	assert.Equal(t, "ADDED later", next(t, watching))
}

// showCacheProgress keeps from the cache how far the store is, so that it cannot
// answer a list that has to be fresh.
func showCacheProgress(t testing.TB, cp *envtest.ControlPlane) {
	fallback, err := cp.Faults().Gate("store/list resource=configmaps caller=" + envtest.AdminUser)
	require.NoError(t, err)
	begin := func() <-chan error {
		_, err := core(cp).Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "s"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		return goDo(t.Context(), func(ctx context.Context) error {
			_, err := core(cp).ConfigMaps("default").List(ctx, metav1.ListOptions{})
			return err
		})
	}
	assert.NoError(t, <-begin(), "passing")
	gate, err := cp.Faults().Gate("cache/configmaps verb=progress")
	require.NoError(t, err)
	done := begin()
	waiting := awaitHeld(t, gate)
	assert.NotZero(t, waiting[0].Revision)
	gate.Remove()
	assert.NoError(t, <-done, "released")
	assert.Empty(t, fallback.Waiting(), "the list came from the cache")

	remove := addRule(t, cp, "drop cache/configmaps verb=progress")
	done = begin()
	awaitHeld(t, fallback)
	fallback.Release(1)
	assert.NoError(t, <-done)
	remove()
}
