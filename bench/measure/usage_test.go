package measure_test

import (
	"context"
	"runtime"
	"slices"
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

// TestFewHaveNoMemory has no garbage collected for a load of a few watches.
func TestFewHaveNoMemory(t *testing.T) {
	for watches, want := range map[int]int64{99: 0, 100: 10} {
		var at []measure.Phase
		meter := measure.NewMeter(watches, func(_ context.Context, p measure.Phase) (measure.Sample, error) {
			at = append(at, p)
			return measure.Sample{Memory: 1000 * int64(len(at))}, nil
		})
		for _, p := range []measure.Phase{measure.PhaseOpening, measure.PhaseOpen, measure.PhaseBegun, measure.PhaseEnded} {
			meter.At(t.Context(), p)
		}
		usage, err := meter.Usage(false, 1)
		require.NoError(t, err)
		assert.Equal(t, want, usage.MemoryPerWatch)
		assert.Equal(t, want != 0, slices.Contains(at, measure.PhaseOpening))
		assert.Contains(t, at, measure.PhaseEnded)
	}
}
