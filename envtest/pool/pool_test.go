package pool_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/pool"
)

// running is what a pool is opened for.
type running func() int

// Run implements pool.TestingM.
func (r running) Run() int { return r() }

// plane counts how often it was stopped.
type plane struct {
	stops int
	err   error
}

// Stop implements pool.ControlPlane.
func (p *plane) Stop(context.Context) error {
	p.stops++
	return p.err
}

// TestTests takes what was parked last, and has every control plane stopped that nobody takes.
func TestTests(t *testing.T) {
	planes := make([]*plane, 11)
	for i := range planes {
		planes[i] = &plane{}
	}
	other := &plane{}
	code := pool.Tests(running(func() int {
		require.True(t, pool.Open())
		assert.Nil(t, pool.Take("a"))
		require.NoError(t, pool.Park(t.Context(), "other", other))
		for _, p := range planes {
			require.NoError(t, pool.Park(t.Context(), "a", p))
		}
		assert.Equal(t, []int{1, 1, 1, 1, 0}, []int{other.stops, planes[0].stops, planes[1].stops, planes[2].stops, planes[3].stops})
		assert.Nil(t, pool.Take("other"), "it was stopped")
		assert.Same(t, planes[10], pool.Take("a"))
		assert.Panics(t, func() { pool.Tests(running(func() int { return 0 })).Run() }, "a second pool")
		return 0
	})).Run()
	assert.Zero(t, code)
	assert.False(t, pool.Open())
	for i, p := range planes[:10] {
		assert.Equal(t, 1, p.stops, "stops of number %d", i)
	}
	assert.Zero(t, planes[10].stops, "a test has it")
	require.NoError(t, pool.Park(t.Context(), "a", planes[10]))
	assert.Equal(t, 1, planes[10].stops, "there is no pool any more")
}

// TestCode has the tests fail, or a control plane that does not stop.
func TestCode(t *testing.T) {
	assert.Equal(t, 3, pool.Tests(running(func() int { return 3 })).Run())
	stuck := &plane{err: errors.New("stuck on purpose")}
	assert.Equal(t, 1, pool.Tests(running(func() int {
		require.NoError(t, pool.Park(t.Context(), "a", stuck))
		return 0
	})).Run())
}
