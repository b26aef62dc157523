package virtualtime_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/sim"
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
		for name, latency := range map[string]time.Duration{"slow": time.Second, "quick": time.Millisecond,
			"first": 0} {
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

// Where work takes no time, a goroutine may hold a mutex while an operation waits for its
// turn, and others wait for the mutex: in sim mode, also if it all begins while another turn
// takes its time. Elsewhere the error says so.
func TestSchedulerMutex(t *testing.T) {
	finished := 0
	err := virtualtime.Watched(50*time.Millisecond, io.Discard, func(begun func()) {
		synctest.Test(t, func(*testing.T) {
			begun()
			scheduler := virtualtime.NewScheduler(virtualtime.Order{Seed: 3}, nil)
			defer scheduler.Stop()
			turn := func(name string) {
				given := make(chan struct{})
				scheduler.Arrive(fault.Operation{Point: "store/put", Name: name}, 0, func() { close(given) })
				<-given
			}
			turn("before")
			var mutex sync.Mutex
			var all sync.WaitGroup
			for _, name := range []string{"a", "b", "c"} {
				all.Go(func() {
					mutex.Lock()
					defer mutex.Unlock()
					turn(name)
					finished++
				})
			}
			all.Wait()
			time.Sleep(time.Hour) // time goes on
		})
	})
	if !sim.Enabled() {
		require.ErrorContains(t, err, "is in sync.Mutex.Lock at "+
			"snowglobe.test/envtest/virtualtime_test.TestSchedulerMutex")
		require.ErrorContains(t, err, "use WithoutLatency if a library does, with WithSeed in sim mode only")
		return
	}
	require.NoError(t, err)
	assert.Equal(t, 3, finished)
}
