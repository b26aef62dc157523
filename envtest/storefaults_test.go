package envtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/embedded"
)

// onBothStores runs a test in virtual time on memory, and in real time on etcd.
func onBothStores(t *testing.T, f func(t *testing.T, cp *envtest.ControlPlane)) {
	t.Run("memory", func(t *testing.T) { envtest.Simulate(t, f) })
	t.Run("embedded", func(t *testing.T) { f(t, envtest.Start(t, envtest.WithStore(embedded.New(embedded.Config{})))) })
}

// TestLostStoreReply loses the reply to a write that has happened: who tries again, as
// one does after a timeout, finds a conflict with itself, and one write is made.
func TestLostStoreReply(t *testing.T) {
	onBothStores(t, func(t *testing.T, cp *envtest.ControlPlane) {
		created := create(t, cp, "a")
		awaitCache(t, cp, "a")
		remove := addRule(t, cp, "lose-reply store/put resource=configmaps name=default/a with=request-timed-out times=1")
		client := core(cp).ConfigMaps("default")
		created.Data = map[string]string{"a": "1"}
		_, err := client.Update(t.Context(), created, metav1.UpdateOptions{})
		assert.ErrorContains(t, err, "etcdserver: request timed out")
		_, err = client.Update(t.Context(), created, metav1.UpdateOptions{})
		assert.True(t, apierrors.IsConflict(err), "tried again: %v", err)
		remove()

		history := historyOf(t, cp, "/registry/configmaps/default/a")
		require.Len(t, history, 2, "created, and updated once")
		assert.True(t, history[0].IsCreate())
		assert.True(t, history[1].IsModify())
	})
}

// TestFrozenCache keeps a watch cache from whatever is new: a list that takes any
// version is stale, and one that has to be fresh is answered by the store when
// upstream has given the cache up.
func TestFrozenCache(t *testing.T) {
	onBothStores(t, func(t *testing.T, cp *envtest.ControlPlane) {
		before := create(t, cp, "before")
		awaitCache(t, cp, "before")
		remove := addRule(t, cp, "freeze cache/configmaps at="+before.ResourceVersion)
		create(t, cp, "after")
		client := core(cp).ConfigMaps("default")
		assert.Equal(t, []string{"before"}, cached(t, cp))

		fallback, err := cp.Faults().Gate("store/list resource=configmaps caller=" + envtest.AdminUser)
		require.NoError(t, err)
		begin := time.Now()
		done := goDo(t.Context(), func(ctx context.Context) error {
			list, err := client.List(ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) != 2 {
				err = fmt.Errorf("a list that has to be fresh has %d items", len(list.Items))
			}
			return err
		})
		awaitHeld(t, fallback)
		assert.GreaterOrEqual(t, time.Since(begin), 3*time.Second, "upstream waits so long for a cache")
		fallback.Open()
		assert.NoError(t, <-done)
		assert.Equal(t, []string{"before"}, cached(t, cp), "still frozen")

		watching := watchFrom(t, cp, before.ResourceVersion)
		remove()
		assert.Equal(t, "ADDED after", next(t, watching))
		assert.Equal(t, []string{"after", "before"}, cached(t, cp))
	})
}

// TestCompactedList forgets, between two pages of a list, what the second is of.
func TestCompactedList(t *testing.T) {
	onBothStores(t, func(t *testing.T, cp *envtest.ControlPlane) {
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, createEvent(t.Context(), cp, name))
		}
		client := core(cp).Events("default")
		remove := addRule(t, cp, "compact store/list resource=events namespace=default nth=2")
		first, err := client.List(t.Context(), metav1.ListOptions{Limit: 1})
		require.NoError(t, err)
		require.NoError(t, createEvent(t.Context(), cp, "d")) // the store moves on
		_, err = client.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: first.Continue})
		remove()
		assertExpired(t, err)

		var status apierrors.APIStatus
		require.ErrorAs(t, err, &status)
		assert.NotEmpty(t, status.Status().Continue, "upstream offers to go on at another revision")
		rest, err := client.List(t.Context(), metav1.ListOptions{Continue: status.Status().Continue})
		require.NoError(t, err)
		assert.NotEmpty(t, rest.Items)
	})
}

// TestCompactedWatch forgets what a watch from an old revision is of, when it is
// about to begin.
func TestCompactedWatch(t *testing.T) {
	onBothStores(t, func(t *testing.T, cp *envtest.ControlPlane) {
		client := core(cp).Events("default")
		old, err := client.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, name := range []string{"a", "b"} {
			require.NoError(t, createEvent(t.Context(), cp, name))
		}
		remove := addRule(t, cp, "compact store/watch-create resource=events caller="+envtest.AdminUser)
		watching, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old.ResourceVersion})
		require.NoError(t, err)
		defer watching.Stop()
		event := <-watching.ResultChan()
		assertExpired(t, apierrors.FromObject(event.Object))
		remove()
	})
}

func assertExpired(t *testing.T, err error) {
	t.Helper()
	var status apierrors.APIStatus
	if assert.ErrorAs(t, err, &status) {
		assert.Equal(t, int32(410), status.Status().Code)
		assert.Equal(t, metav1.StatusReasonExpired, status.Status().Reason)
	}
}

// TestSlowCache has ten changes lag three seconds behind the store: each its own
// three, and not one after the other.
func TestSlowCache(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		watching := watchConfigMaps(t, cp)
		remove := addRule(t, cp, "delay cache/configmaps verb=event by=3s")
		begin := time.Now()
		for i := range 10 {
			create(t, cp, fmt.Sprint("slow-", i))
			time.Sleep(100 * time.Millisecond)
		}
		for i := range 10 {
			assert.Equal(t, fmt.Sprint("ADDED slow-", i), next(t, watching))
			written := time.Duration(i) * 100 * time.Millisecond
			assert.InDelta(t, written+3*time.Second, time.Since(begin), float64(50*time.Millisecond), "%d", i)
		}
		remove()
	})
}
