package envtest_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/envtest"
)

func init() {
	pointTests["client"] = pointTest{show: showClientPartition}
}

// showClientPartition cuts one client off, and one user of another: what is in flight
// times out, nothing gets through, and everybody else goes on.
func showClientPartition(t testing.TB, cp *envtest.ControlPlane) {
	alone, shared := cp.NewClient(), cp.NewClient() // client-1 and client-2
	anna, bob := shared.Config(envtest.User("anna", "system:masters")), shared.Config(envtest.User("bob", "system:masters"))
	open := func(client *envtest.Client) watch.Interface {
		watcher, err := configMapsOf(client.Config()).Watch(t.Context(), metav1.ListOptions{ResourceVersion: latest(t, cp)})
		require.NoError(t, err)
		return watcher
	}
	cut, whole := open(alone), open(shared)
	defer whole.Stop()

	byName := inject(t, cp, "partition client name=client-1")
	for event := range cut.ResultChan() {
		assert.Equal(t, watch.Error, event.Type, "a watch that times out")
	}
	assert.ErrorIs(t, list(t.Context(), alone.Config()), syscall.EHOSTUNREACH)
	require.NoError(t, list(t.Context(), anna))
	create(t, cp, "meanwhile")
	assert.Equal(t, watch.Added, (<-whole.ResultChan()).Type)
	assert.NotZero(t, byName.Fired())
	byName.Remove()
	require.NoError(t, list(t.Context(), alone.Config()))

	byUser := inject(t, cp, "partition client caller=anna server=apiserver-0")
	assert.ErrorIs(t, list(t.Context(), anna), syscall.EHOSTUNREACH)
	require.NoError(t, list(t.Context(), bob))
	byUser.Remove()
	require.NoError(t, list(t.Context(), anna))
}
