package virtualtime

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAlone has other goroutines of a bubble wait for what only the bubble can bring, and for something else.
func TestAlone(t *testing.T) {
	assert.Nil(t, bubbleCounts(), "there are counts outside a bubble")
	outside := make(chan struct{})
	synctest.Test(t, func(t *testing.T) {
		counts := bubbleCounts()
		require.NotNil(t, counts, "the runtime is not the one that this package knows: Settle takes ten times as long")
		synctest.Wait() // until the goroutine that has started the bubble waits for it
		assert.True(t, counts.alone())
		ended := make(chan struct{})
		var rests atomic.Bool
		go func() {
			defer close(ended)
			for !rests.Load() {
				runtime.Gosched()
			}
			time.Sleep(time.Minute)
			<-outside
		}()
		assert.False(t, counts.alone(), "another goroutine runs")
		rests.Store(true)
		synctest.Wait()
		assert.True(t, counts.alone(), "the other one sleeps")
		time.Sleep(time.Minute) // both wake up, in any order
		for range 1000 {
			require.False(t, counts.alone(), "the other one waits for a channel from outside")
		}
		close(outside)
		<-ended
	})
}
