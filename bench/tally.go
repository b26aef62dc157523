package bench

import "fmt"

// tally is which of the numbered events one watcher has seen. It belongs to the
// watcher's goroutine.
type tally struct {
	events int
	bits   []uint64 // one for each event
	seen   int      // different events
	last   string   // resourceVersion of the newest event

	duplicates int
	reordered  int
}

func newTally(events int) tally {
	return tally{events: events, bits: make([]uint64, (events+63)/64)}
}

// see counts an event and says whether it is a new one.
func (t *tally) see(event int) bool {
	word, bit := &t.bits[event/64], uint64(1)<<(event%64)
	if *word&bit != 0 {
		t.duplicates++
		return false
	}
	*word |= bit
	t.seen++
	return true
}

func (t *tally) lost() int { return t.events - t.seen }

// firstLost is the number of the first event that was not seen, or -1.
func (t *tally) firstLost() int {
	for event := range t.events {
		if t.bits[event/64]&(1<<(event%64)) == 0 {
			return event
		}
	}
	return -1
}

// defects says in words what went wrong, or nothing.
func (t *tally) defects() string {
	switch {
	case t.lost() > 0:
		return fmt.Sprintf("missed %d of %d events, the first of them number %d", t.lost(), t.events, t.firstLost()+1)
	case t.duplicates > 0:
		return fmt.Sprintf("saw %d events again", t.duplicates)
	case t.reordered > 0:
		return fmt.Sprintf("saw %d events after a newer one", t.reordered)
	}
	return ""
}
