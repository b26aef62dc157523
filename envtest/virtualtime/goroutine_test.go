package virtualtime_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/envtest/virtualtime"
)

// A goroutine that waits for garbage to be collected does not stand still: on a busy machine
// that takes seconds.
func TestRuns(t *testing.T) {
	for state, runs := range map[string]bool{
		"running": true, "runnable": true, "wait for GC cycle": true, "GC assist wait": true, "stopping the world": true,
		"sync.Mutex.Lock": false, "IO wait": false, "select": false, "chan receive (durable)": false,
	} {
		assert.Equal(t, runs, virtualtime.Goroutine{State: state}.Runs(), state)
	}
}
