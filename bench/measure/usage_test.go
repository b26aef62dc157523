package measure_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/measure"
)

// TestMemoryIsInUse has a process keep little of what it has had: the rest lies around it, and in a pool.
func TestMemoryIsInUse(t *testing.T) {
	const size, all, one = 1 << 10, 1 << 16, 16 // bytes, of 64 MiB one in so many
	before, err := measure.ReadSelf(t.Context(), measure.PhaseOpening)
	require.NoError(t, err)
	kept := make([][]byte, all/one)
	for i := range all {
		if object := make([]byte, size); i%one == 0 {
			kept[i/one] = object
		}
	}
	var pool sync.Pool
	pool.Put(new([size * all]byte))
	after, err := measure.ReadSelf(t.Context(), measure.PhaseOpen)
	require.NoError(t, err)
	assert.InDelta(t, size*all/one, after.Memory-before.Memory, size*all/one/4)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(&pool)
}
