package bench

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// share is what the watchers of one process got. Laggards are in no share, but for what no watcher
// may get.
type share struct {
	Deliveries, Lost, Restarts     int
	Duplicates, Reordered, Foreign int
	Newest                         time.Duration          // when the newest event arrived, on the load's clock
	Sick                           int                    // watchers that did not get what they should have
	Defects                        string                 // of the first of them
	TimedOut                       bool                   // some events had not come in time
	Opening, Delivery              *hdrhistogram.Snapshot `json:",omitempty"` // from another process
}

// share sums up this process.
func (l *load) share() (s share) {
	for _, w := range l.watchers {
		s.Duplicates += w.tally.duplicates
		s.Reordered += w.tally.reordered
		s.Foreign += w.tally.foreign
		if words := w.tally.defects(); words != "" && !w.expired {
			if s.Sick++; s.Sick == 1 {
				s.Defects = fmt.Sprintf("watcher %d %s", w.number+1, words)
			}
		}
		if w.pace != paceFull {
			continue
		}
		s.Deliveries += w.tally.seen
		s.Lost += w.tally.lost()
		s.Restarts += w.restarts
		s.Newest = max(s.Newest, w.newest)
	}
	return s
}

// shares are those of all processes.
func (l *load) shares() []share {
	all := []share{l.share()}
	for _, p := range l.elsewhere {
		if p.share != nil {
			all = append(all, *p.share)
		}
	}
	return all
}
