package reststorage

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// cacheClock is the clock of the watch caches. For every read that waited for a
// fresh cache, upstream leaves a goroutine behind that sleeps out its full three
// seconds on the clock; stopping the clock wakes them all.
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

// Since implements clock.PassiveClock. A stopped clock adds a minute, so that reads
// which still wait three seconds for a fresh cache time out. It adds no more,
// because a cache goes through the seconds since its last bookmarks one by one.
func (c *cacheClock) Since(t time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Since(t)
	if c.stopped {
		since += time.Minute
	}
	return since
}

// NewTimer implements clock.Clock. Each of some seventy caches has a timer of about
// a second, no two due at once. On whole seconds they share a wake-up, and wake-ups
// are most of what an idle virtual second costs.
func (c *cacheClock) NewTimer(d time.Duration) clock.Timer {
	return &alignedTimer{Timer: c.RealClock.NewTimer(align(d))}
}

// alignedTimer fires on whole seconds.
type alignedTimer struct{ clock.Timer }

// Reset implements clock.Timer.
func (t *alignedTimer) Reset(d time.Duration) bool { return t.Timer.Reset(align(d)) }

// align lengthens a wait of a second or more so that it ends on a whole second.
func align(d time.Duration) time.Duration {
	if d < time.Second {
		return d
	}
	now := time.Now()
	return now.Add(d + time.Second - 1).Truncate(time.Second).Sub(now)
}

// stop ends all waits on the clock, and all that begin later.
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
