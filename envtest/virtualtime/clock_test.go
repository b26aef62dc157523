package virtualtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestSetClock sets the clock of a bubble, which only goes forward.
func TestSetClock(t *testing.T) {
	then := time.Date(2026, 11, 27, 9, 0, 0, 0, time.FixedZone("", 3600))
	assert.NoError(t, Bubble(func() error {
		assert.Equal(t, Epoch, time.Now().UTC())
		assert.NoError(t, SetClock(then))
		assert.True(t, time.Now().Equal(then))
		assert.NoError(t, SetClock(then))
		assert.NoError(t, CheckClock(latest))
		time.Sleep(time.Hour)
		assert.EqualError(t, SetClock(then), "the virtual clock can't be set to 2026-11-27T09:00:00+01:00: it is 2026-11-27T09:00:00Z already")
		assert.ErrorContains(t, SetClock(Epoch.Add(-time.Second)), "virtual time can begin between 2000-01-01T00:00:00Z and 2250-01-01T00:00:00Z, and not at 1999-12-31T23:59:59Z")
		return SetClock(latest)
	}))
	assert.ErrorContains(t, SetClock(then), "only the clock of virtual time can be set")
}
