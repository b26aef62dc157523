package virtualtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/virtualtime"
)

// An operation takes its time before its turn, others go first meanwhile, and Idle
// waits for it. A turn takes some microseconds then.
func TestSchedulerLatency(t *testing.T) {
	require.NoError(t, virtualtime.Bubble(func() error {
		var order []string
		scheduler := virtualtime.NewScheduler(virtualtime.Order{Latency: true}, func(turn virtualtime.Turn) {
			order = append(order, turn.Operation.Name)
		})
		defer scheduler.Stop()
		begun := time.Now()
		for name, latency := range map[string]time.Duration{"slow": time.Second, "quick": time.Millisecond, "first": 0} {
			scheduler.Arrive(fault.Operation{Point: "store/put", Name: name}, latency, func() {})
		}
		if err := scheduler.Idle(context.Background()); err != nil {
			return err
		}
		assert.Equal(t, []string{"first", "quick", "slow"}, order)
		assert.GreaterOrEqual(t, time.Since(begun), time.Second+time.Microsecond)
		assert.Less(t, time.Since(begun), time.Second+10*time.Microsecond)
		return nil
	}))
}
