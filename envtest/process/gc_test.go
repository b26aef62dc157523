package process

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestBoot has two boots overlap, and leaves a percentage alone that somebody has chosen.
func TestBoot(t *testing.T) {
	before := debug.SetGCPercent(defaultGCPercent)
	defer debug.SetGCPercent(before)
	percent := func() int {
		now := debug.SetGCPercent(defaultGCPercent)
		debug.SetGCPercent(now)
		return now
	}
	first, second := Boot(), Boot()
	assert.Equal(t, bootGCPercent, percent())
	first()
	first()
	assert.Equal(t, bootGCPercent, percent(), "the second goes on")
	second()
	assert.Equal(t, defaultGCPercent, percent())

	end := Boot()
	debug.SetGCPercent(50)
	end()
	assert.Equal(t, 50, percent(), "chosen during a boot")
	Boot()()
	assert.Equal(t, 50, percent(), "chosen before it")
}
