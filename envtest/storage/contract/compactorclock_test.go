package contract

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// compactorPeriod is how often upstream's watch cache checks for a
// compaction. Cases do not wait for it: they fire that timer on demand.
const compactorPeriod = 15 * time.Second

// compactorClock is the clock of a watch cache: the real one, except that the
// compactor's timers fire on demand and that it can be advanced.
type compactorClock struct {
	clock.RealClock

	mu       sync.Mutex
	advanced time.Duration
	timers   []chan time.Time
}

// Now implements clock.Clock.
func (c *compactorClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.RealClock.Now().Add(c.advanced)
}

// Since implements clock.Clock.
func (c *compactorClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// advance moves the time forward; it fires no timer.
func (c *compactorClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanced += d
}

// NewTimer implements clock.Clock.
func (c *compactorClock) NewTimer(d time.Duration) clock.Timer {
	if d != compactorPeriod {
		return c.RealClock.NewTimer(d)
	}
	fires := make(chan time.Time, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, fires)
	return compactorTimer(fires)
}

func (c *compactorClock) fireCompactor() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fires := range c.timers {
		select {
		case fires <- c.RealClock.Now():
		default: // fired already and not received yet
		}
	}
}

// compactorTimer fires only when fireCompactor is called.
type compactorTimer chan time.Time

// C implements clock.Timer.
func (t compactorTimer) C() <-chan time.Time { return t }

// Stop implements clock.Timer.
func (compactorTimer) Stop() bool { return true }

// Reset implements clock.Timer.
func (compactorTimer) Reset(time.Duration) bool { return true }
