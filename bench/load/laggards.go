package load

import "time"

// pace is how a watcher reads.
type pace int

const (
	paceFull    pace = iota // as fast as it can
	paceSlow                // with a pause after each event
	paceStalled             // nothing, until those at full pace have all events
)

// slowPause is how long a slow watcher takes over an event.
const slowPause = 100 * time.Millisecond

// paceOf is the pace of a watcher: laggards come last.
func (o Options) paceOf(number int) pace {
	slow, stalled := o.laggards(o.Watchers)
	switch {
	case number >= o.Watchers-stalled:
		return paceStalled
	case number >= o.Watchers-stalled-slow:
		return paceSlow
	}
	return paceFull
}

// pause has a slow watcher wait, as long as it matters.
func (w *watcher) pause() {
	select {
	case <-time.After(slowPause):
	case <-w.load.caughtUp:
	}
}
