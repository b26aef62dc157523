package virtualtime_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/envtest/virtualtime"
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
