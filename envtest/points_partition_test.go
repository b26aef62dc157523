package envtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func init() {
	pointTests["store"] = pointTest{show: showStorePartition, onEtcd: true}
}

// showStorePartition cuts the server off its store while a write is on its way there:
// the write waits, and a watch hears of it when the network is whole again.
func showStorePartition(t testing.TB, cp *envtest.ControlPlane) {
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
