package bench

import "fmt"

// tally records which of the numbered events one watcher has seen. Only the watcher's
// goroutine uses it.
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

// see records an event and reports whether it is new.
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

// firstLost returns the number of the first event not seen, or -1.
func (t *tally) firstLost() int {
	for event := range t.events {
		if t.bits[event/64]&(1<<(event%64)) == 0 {
			return event
		}
	}
	return -1
}

// defects describes what went wrong; it is empty if nothing did.
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
