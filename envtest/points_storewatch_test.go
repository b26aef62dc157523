package envtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func init() {
	pointTests["store/watch-create"] = pointTest{show: showWatchCreate, onEtcd: true}
	pointTests["store/watch-event put"] = pointTest{show: showWatchEvent, onEtcd: true}
	pointTests["store/progress request"] = pointTest{show: showProgress, onEtcd: true}
}

// watchEvents watches Events: they have no watch cache, so that each watch is one
// of the store.
func watchEvents(t testing.TB, cp *envtest.ControlPlane) watch.Interface {
	t.Helper()
	client := core(cp).Events("default")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	watching, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	t.Cleanup(watching.Stop)
	return watching
}

// next returns the next event of a watch, as "ADDED NAME"; of an error the
// reason.
func next(t testing.TB, watching watch.Interface) string {
	t.Helper()
	select {
	case event, ok := <-watching.ResultChan():
		switch object := event.Object.(type) {
		case metav1.Object:
			return string(event.Type) + " " + object.GetName()
		case *metav1.Status:
			return string(event.Type) + " " + string(object.Reason)
		}
		assert.False(t, ok)
		return "end"
	case <-time.After(5 * time.Minute):
		require.Fail(t, "the watch says nothing")
		return ""
	}
}

func showWatchCreate(t testing.TB, cp *envtest.ControlPlane) {
	const match = "store/watch-create resource=events caller=" + envtest.AdminUser
	watching := watchEvents(t, cp)
	require.NoError(t, createEvent(t.Context(), cp, "passed"))
	assert.Equal(t, "ADDED passed", next(t, watching))

	gate, err := cp.Faults().Gate(match)
	require.NoError(t, err)
	watching = watchEvents(t, cp)
	waiting := awaitHeld(t, gate)
	assert.Equal(t, fault.Operation{
		Point: "store/watch-create", Phase: fault.Before, Server: "apiserver-0", Resource: "events", Namespace: "default",
		Key: "/registry/events/default/", Caller: envtest.AdminUser, Occurrence: 1,
	}, waiting[0])
	require.NoError(t, createEvent(t.Context(), cp, "held"))
	gate.Release(1)
	assert.Equal(t, "ADDED held", next(t, watching), "the watch begins where it was asked to")
	gate.Remove()

	for action, want := range map[string]string{
		"fail " + match + " with=compacted": "ERROR Expired",
		"fail " + match + " with=no-leader": "ERROR InternalError",
		"cancel " + match:                   "end",
	} {
		remove := addRule(t, cp, action)
		assert.Equal(t, want, next(t, watchEvents(t, cp)), action)
		remove()
	}

	drop, err := cp.Faults().Inject("drop " + match + " times=1")
	require.NoError(t, err)
	gate, err = cp.Faults().Gate(match)
	require.NoError(t, err)
	dropped := watchEvents(t, cp)
	// The answer begins before the store is asked, so the second watch might come first.
	require.Eventually(t, func() bool { return drop.Fired() == 1 }, time.Minute, time.Millisecond, "no watch is dropped")
	after := watchEvents(t, cp)
	awaitHeld(t, gate) // the second watch: the first was dropped, and came no further
	gate.Open()
	require.NoError(t, createEvent(t.Context(), cp, "after"))
	assert.Equal(t, "ADDED after", next(t, after))
	dropped.Stop()
	for event := range dropped.ResultChan() { // an error of the client's, which was stopped
		assert.Equal(t, watch.Error, event.Type, "a watch that was dropped told of something")
	}
	drop.Remove()
}

func showWatchEvent(t testing.TB, cp *envtest.ControlPlane) {
	watching := watchEvents(t, cp)
	make := func(name string) { require.NoError(t, createEvent(t.Context(), cp, name)) }
	make("passed")
	assert.Equal(t, "ADDED passed", next(t, watching))

	gate, err := cp.Faults().Gate("store/watch-event resource=events name=default/held")
	require.NoError(t, err)
	make("held")
	make("behind")
	waiting := awaitHeld(t, gate)
	assert.Equal(t, "store/watch-event put events default/held by "+envtest.AdminUser+" on apiserver-0", waiting[0].String())
	assert.NotZero(t, waiting[0].Revision)
	select {
	case event := <-watching.ResultChan():
		t.Errorf("%v overtook what is held", event)
	default:
	}
	gate.Open()
	assert.Equal(t, "ADDED held", next(t, watching))
	assert.Equal(t, "ADDED behind", next(t, watching))
	require.NoError(t, core(cp).Events("default").Delete(t.Context(), "held", metav1.DeleteOptions{}))
	assert.Equal(t, "DELETED held", next(t, watching))

	remove := addRule(t, cp, "drop store/watch-event verb=delete resource=events name=default/behind")
	require.NoError(t, core(cp).Events("default").Delete(t.Context(), "behind", metav1.DeleteOptions{}))
	removeToo := addRule(t, cp, "duplicate store/watch-event verb=put resource=events name=default/twice")
	make("twice")
	assert.Equal(t, "ADDED twice", next(t, watching), "the deletion was dropped")
	assert.Equal(t, "ADDED twice", next(t, watching))
	remove()
	removeToo()

	remove = addRule(t, cp, "cancel store/watch-event resource=events name=default/last")
	make("last")
	assert.Equal(t, "end", next(t, watching))
	remove()
}

// showProgress makes the watch cache of ConfigMaps ask how far it is: a list has
// to be as fresh as the store, which has changed elsewhere.
func showProgress(t testing.TB, cp *envtest.ControlPlane) {
	fallback, err := cp.Faults().Gate("store/list resource=configmaps caller=" + envtest.AdminUser)
	require.NoError(t, err)
	list := func(ctx context.Context) error {
		_, err := core(cp).ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err
	}
	begin := func() <-chan error {
		_, err := core(cp).Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "s"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		return goDo(t.Context(), list)
	}
	assert.NoError(t, <-begin(), "passing")
	for _, verb := range []string{"request", "notify"} {
		gate, err := cp.Faults().Gate("store/progress resource=configmaps verb=" + verb)
		require.NoError(t, err)
		done := begin()
		waiting := awaitHeld(t, gate)
		assert.Equal(t, "store/progress "+verb+" configmaps on apiserver-0", waiting[0].String())
		gate.Remove()
		assert.NoError(t, <-done, "released")
		assert.Empty(t, fallback.Waiting(), "the list came from the cache")
	}
	for _, verb := range []string{"request", "notify"} {
		remove := addRule(t, cp, "drop store/progress resource=configmaps verb="+verb)
		done := begin()
		awaitHeld(t, fallback)
		fallback.Release(1)
		assert.NoError(t, <-done)
		remove()
	}
}
