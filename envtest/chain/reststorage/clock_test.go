package reststorage

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestCacheClock waits on the clock, and stops it under those who wait.
func TestCacheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, begin := newCacheClock(), time.Now()
		<-clock.After(3 * time.Second)
		assert.Equal(t, 3*time.Second, clock.Since(begin), "what passed on the clock")
		late := clock.After(time.Hour)
		clock.stop()
		<-late
		<-clock.After(time.Hour)
		assert.Equal(t, 3*time.Second, time.Since(begin), "a stopped clock made its caller wait")
		passed := clock.Since(begin)
		assert.GreaterOrEqual(t, passed, 10*time.Second, "what passed on the stopped clock is not enough to give up a wait")
		assert.LessOrEqual(t, passed, time.Hour, "what passed on the stopped clock is more than enough to give up a wait")
	})
}

// TestCacheClockAligns rounds long waits up to whole seconds.
func TestCacheClockAligns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, begin := newCacheClock(), time.Now()
		for _, test := range []struct{ wait, until time.Duration }{
			{1100 * time.Millisecond, 2 * time.Second},
			{time.Second, 3 * time.Second},
			{100 * time.Millisecond, 3100 * time.Millisecond},
		} {
			<-clock.NewTimer(test.wait).C()
			assert.Equal(t, test.until, time.Since(begin), "the end of a wait of %s", test.wait)
		}
	})
}
