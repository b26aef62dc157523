package bench

import (
	"fmt"
	"time"
)

// pace is how a watcher reads.
type pace int

const (
	paceFull    pace = iota // as fast as it can
	paceSlow                // with a pause after each event
	paceStalled             // nothing, until those at full pace have all events
)

// slowPause is how long a slow watcher takes over an event.
const slowPause = 100 * time.Millisecond

// Laggards are the watchers of a load that were slow or stalled. When the others have all events,
// these read on as fast as they can, so that it is known what the server has kept for them.
type Laggards struct {
	Slow       int `json:"slow"`
	Stalled    int `json:"stalled"`
	Deliveries int `json:"deliveries"`
	// Terminations is how many of their watches the server ended. They go on from their last event.
	Terminations int `json:"terminations"`
	// Expired is how many could not, since the watch cache had forgotten what came next.
	Expired int `json:"expired"`
}

// paceOf is the pace of a watcher: laggards come last.
func (o WatchOptions) paceOf(number int) pace {
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
	timer := time.NewTimer(slowPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.load.caughtUp:
	}
}

// add counts a watcher that is one of them.
func (l *Laggards) add(w *watcher) {
	if w.pace == paceSlow {
		l.Slow++
	} else {
		l.Stalled++
	}
	l.Deliveries += w.tally.seen
	l.Terminations += w.restarts
	if w.expired {
		l.Expired++
	}
}

// rows are what a table of loads says of them; each has some.
func laggardRows(row func(name string, cell func(WatchLoad) string)) {
	of := func(name string, count func(Laggards) int) {
		row(name, func(l WatchLoad) string { return fmt.Sprint(count(*l.Laggards)) })
	}
	of("laggards", func(l Laggards) int { return l.Slow + l.Stalled })
	of("deliveries to them", func(l Laggards) int { return l.Deliveries })
	of("terminated", func(l Laggards) int { return l.Terminations })
	of("expired", func(l Laggards) int { return l.Expired })
}
