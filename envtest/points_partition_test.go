package envtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func init() {
	pointTests["store"] = pointTest{show: showStorePartition, onEtcd: true}
	pointTests["client"] = pointTest{show: showClientPartition}
}

// showStorePartition cuts the server off its store while a write is on its way there:
// the write waits, and a watch hears of it when the network is whole again.
func showStorePartition(t *testing.T, cp *envtest.ControlPlane) {
	watching := watchEvents(t, cp)
	gate, err := cp.Faults().Gate("store/put resource=events")
	require.NoError(t, err)
	done := goDo(t.Context(), func(ctx context.Context) error { return createEvent(ctx, cp, "late") })
	awaitHeld(t, gate)
	added, err := cp.Faults().Add(fault.Rule{Action: fault.Action{Kind: fault.Partition}, Match: fault.Match{Point: fault.StorePath, Server: "apiserver-0"}})
	require.NoError(t, err)
	assert.Equal(t, 1, added[0].Fired())
	gate.Remove()
	ready, red := cp.Servers()[0].Ready(t.Context())
	assert.False(t, ready)
	assert.Contains(t, red, "etcd-readiness")
	select {
	case err := <-done:
		t.Errorf("a write got through: %v", err)
	case event := <-watching.ResultChan():
		t.Errorf("a watch got through: %v", event)
	default:
	}
	added[0].Remove()
	assert.NoError(t, <-done)
	assert.Equal(t, "ADDED late", next(t, watching))
	require.NoError(t, cp.WaitReady(t.Context()))
}

// showClientPartition cuts one client off the server: its watch times out, and the
// server is out of its reach. Another one notices nothing.
func showClientPartition(t *testing.T, cp *envtest.ControlPlane) {
	cut, other := configMapsOf(cp.NewClient().Config()), configMapsOf(cp.NewClient().Config())
	version := latest(t, cp)
	broken, err := cut.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	require.NoError(t, err)
	whole, err := other.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	require.NoError(t, err)
	defer whole.Stop()
	remove := addRule(t, cp, "partition client name=client-1 server=apiserver-0")
	for event := range broken.ResultChan() {
		assert.Equal(t, watch.Error, event.Type, "a watch that is cut off told of something")
	}
	_, err = cut.Get(t.Context(), "a", metav1.GetOptions{})
	assert.ErrorContains(t, err, "no route to host")
	createAt(t, other, "a")
	assert.Equal(t, "ADDED a", next(t, whole))
	remove()
	_, err = cut.Get(t.Context(), "a", metav1.GetOptions{})
	assert.NoError(t, err)
}
