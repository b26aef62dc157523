package chain

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// cacheClock is the clock of the chain's watch caches. Upstream leaves a
// goroutine waiting out its full three seconds on the clock for every read that
// waited for a fresh cache; a stopped clock lets them all go.
type cacheClock struct {
	clock.RealClock
	mu      sync.Mutex
	stopped bool
	pending map[chan time.Time]*time.Timer
}

func newCacheClock() *cacheClock { return &cacheClock{pending: map[chan time.Time]*time.Timer{}} }

// After implements clock.Clock.
func (c *cacheClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	fired := make(chan time.Time, 1)
	if c.stopped {
		fired <- c.Now()
		return fired
	}
	c.pending[fired] = time.AfterFunc(d, func() { c.fire(fired) })
	return fired
}

func (c *cacheClock) fire(fired chan time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.pending[fired]; ok {
		delete(c.pending, fired)
		fired <- c.Now()
	}
}

// Since implements clock.PassiveClock. On a stopped clock a minute more has
// passed, so that who still waits the three seconds for a fresh cache gives up.
// It is no more than that: a cache counts the seconds since it last sent
// bookmarks one by one.
func (c *cacheClock) Since(t time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Since(t)
	if c.stopped {
		since += time.Minute
	}
	return since
}

// NewTimer implements clock.Clock. Upstream gives each of some seventy caches a
// timer of its own, about once a second and never at the same time; on whole
// seconds they share a wake-up, which is most of what an idle virtual second
// costs.
func (c *cacheClock) NewTimer(d time.Duration) clock.Timer {
	return &alignedTimer{Timer: c.RealClock.NewTimer(align(d))}
}

// alignedTimer fires on whole seconds.
type alignedTimer struct{ clock.Timer }

// Reset implements clock.Timer.
func (t *alignedTimer) Reset(d time.Duration) bool { return t.Timer.Reset(align(d)) }

// align rounds the end of a wait of a second or more up to a whole second.
func align(d time.Duration) time.Duration {
	if d < time.Second {
		return d
	}
	now := time.Now()
	end := now.Add(d)
	if whole := end.Truncate(time.Second); whole.Before(end) {
		end = whole.Add(time.Second)
	}
	return end.Sub(now)
}

// stop fires everything that waits, now and later.
func (c *cacheClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for fired, timer := range c.pending {
		timer.Stop()
		fired <- c.Now()
	}
	clear(c.pending)
}
