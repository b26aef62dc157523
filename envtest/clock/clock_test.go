package clock_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/envtest/clock"
)

func TestVirtual(t *testing.T) {
	assert.False(t, clock.Virtual())
	synctest.Test(t, func(t *testing.T) {
		assert.True(t, clock.Virtual())
		inside := make(chan bool)
		go func() { inside <- clock.Virtual() }()
		assert.True(t, <-inside)
	})
	assert.NoError(t, clock.Bubble(func() error {
		assert.True(t, clock.Virtual())
		return nil
	}))
}
