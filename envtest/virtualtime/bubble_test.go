package virtualtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/pages"
)

func TestVirtual(t *testing.T) {
	assert.False(t, virtualtime.Virtual())
	synctest.Test(t, func(t *testing.T) {
		assert.True(t, virtualtime.Virtual())
		inside := make(chan bool)
		go func() { inside <- virtualtime.Virtual() }()
		assert.True(t, <-inside)
	})
	assert.NoError(t, virtualtime.Bubble(func() error {
		assert.True(t, virtualtime.Virtual())
		return nil
	}))
}

// A goroutine that ends after a pause is given it, though no test waits for it.
func TestBubbleGrace(t *testing.T) {
	ended := false
	require.NoError(t, virtualtime.Bubble(func() error {
		go func() {
			time.Sleep(3 * time.Second)
			ended = true
		}()
		return nil
	}))
	assert.True(t, ended)
}

// An error about goroutines that wait for ever has their stacks.
func TestBubbleDeadlock(t *testing.T) {
	err := virtualtime.Bubble(func() error {
		go waitForEver(make(chan struct{}))
		return nil
	})
	assert.ErrorContains(t, err, "blocked goroutines remain")
	assert.ErrorContains(t, err, "virtualtime_test.waitForEver")
}

func waitForEver(c chan struct{}) { <-c }

// TestAsyncTimers says why there is no virtual time with the timers of Go 1.22.
func TestAsyncTimers(t *testing.T) {
	t.Setenv("GODEBUG", "asynctimerchan=1")
	err := virtualtime.Bubble(func() error { return nil })
	require.ErrorContains(t, err, "there is no virtual time with asynctimerchan=1")
	pages.Troubleshooting(t, "../..", err.Error())
}
