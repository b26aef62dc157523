package storagetest

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// compactorPeriod is how often upstream's watch cache looks whether the store
// was compacted. A case would have to wait as long, so its clock is nudged.
const compactorPeriod = 15 * time.Second

// nudgedClock is the clock of a watch cache: real, but for timers of the
// compactor, which fire when they are told to, and for leaps.
type nudgedClock struct {
	clock.RealClock

	mu     sync.Mutex
	leaped time.Duration
	nudged []chan time.Time
}

// Now implements clock.Clock.
func (c *nudgedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.RealClock.Now().Add(c.leaped)
}

// Since implements clock.Clock.
func (c *nudgedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// leap moves the time on; it fires no timer.
func (c *nudgedClock) leap(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaped += d
}

// NewTimer implements clock.Clock.
func (c *nudgedClock) NewTimer(d time.Duration) clock.Timer {
	if d != compactorPeriod {
		return c.RealClock.NewTimer(d)
	}
	fires := make(chan time.Time, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nudged = append(c.nudged, fires)
	return nudgedTimer(fires)
}

// nudge fires the compactor's timers.
func (c *nudgedClock) nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fires := range c.nudged {
		select {
		case fires <- c.RealClock.Now():
		default: // nudged already and not seen yet
		}
	}
}

// nudgedTimer fires whenever its clock is nudged, and never by itself.
type nudgedTimer chan time.Time

// C implements clock.Timer.
func (t nudgedTimer) C() <-chan time.Time { return t }

// Stop implements clock.Timer.
func (nudgedTimer) Stop() bool { return true }

// Reset implements clock.Timer.
func (nudgedTimer) Reset(time.Duration) bool { return true }
