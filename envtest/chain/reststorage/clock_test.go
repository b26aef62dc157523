package reststorage

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCacheClock waits on the clock, and stops it under those who wait.
func TestCacheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, begin := newCacheClock(), time.Now()
		<-clock.After(3 * time.Second)
		if passed := clock.Since(begin); passed != 3*time.Second {
			t.Errorf("%s passed on the clock", passed)
		}
		late := clock.After(time.Hour)
		clock.stop()
		<-late
		<-clock.After(time.Hour)
		if passed := time.Since(begin); passed != 3*time.Second {
			t.Errorf("a stopped clock made somebody wait until %s", passed)
		}
		if passed := clock.Since(begin); passed < 10*time.Second || passed > time.Hour {
			t.Errorf("on the stopped clock %s passed; want enough to give up a wait, and no more", passed)
		}
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
			if at := time.Since(begin); at != test.until {
				t.Errorf("a wait of %s ended at %s, want %s", test.wait, at, test.until)
			}
		}
	})
}
