package load

import "fmt"

// numbering says which events a load has, and which concern a watcher. Object k has the events
// k, k+objects, k+2*objects and so on below events, then the last one, events+k, which says that
// no more come. With 5 events and 2 objects, object 1 has the events 1 and 3, and 6 as its last.
// Objects of a group have a namespace and a label in common, by which some watchers select them:
// object k is of group k mod groups.
type numbering struct {
	events  int
	Objects int
	Groups  int
}

// warmUpNumber is the number that all events of the warm-up have.
func (n numbering) warmUpNumber() int { return n.events + n.Objects }

// of returns the object of an event, and whether it is the object's last one.
func (n numbering) of(event int) (object int, last bool) {
	if event >= n.events {
		return event - n.events, true
	}
	return event % n.Objects, false
}

// count is how many events, without the last ones, and how many objects a group has.
func (n numbering) count(group int) (events, objects int) {
	for object := group; object < n.Objects; object += n.Groups {
		objects++
		events += (n.events - object + n.Objects - 1) / n.Objects
	}
	return events, objects
}

// tally is which events of its group a watcher has seen. Only its goroutine uses it.
type tally struct {
	numbering
	group    int
	expected int      // events
	bits     []uint64 // one for each event
	seen     int      // different events
	newest   []int    // of each object
	open     int      // objects whose last event has not been seen

	duplicates int
	reordered  int
	foreign    int // events of other groups
}

func newTally(n numbering, group int) tally {
	t := tally{numbering: n, group: group, bits: make([]uint64, (n.events+n.Objects+63)/64),
		newest: make([]int, n.Objects)}
	t.expected, t.open = n.count(group)
	return t
}

// see records an event, and reports whether it is a new one that counts: the last of an object
// does not.
func (t *tally) see(event int) (counts bool, err error) {
	if event >= t.events+t.Objects {
		return false, fmt.Errorf("event %d is not of this load", event)
	}
	object, last := t.of(event)
	if object%t.Groups != t.group {
		t.foreign++
		return false, nil
	}
	if event < t.newest[object] {
		t.reordered++
	}
	t.newest[object] = max(t.newest[object], event)
	word, bit := &t.bits[event/64], uint64(1)<<(event%64)
	if *word&bit != 0 {
		t.duplicates++
		return false, nil
	}
	*word |= bit
	if last {
		t.open--
		return false, nil
	}
	t.seen++
	return true, nil
}

// ended reports whether the last events of all objects are there.
func (t *tally) ended() bool { return t.open == 0 }

func (t *tally) lost() int { return t.expected - t.seen }

// firstLost returns the number of the first event not seen, or -1.
func (t *tally) firstLost() int {
	for event := range t.events {
		if object, _ := t.of(event); object%t.Groups == t.group && t.bits[event/64]&(1<<(event%64)) == 0 {
			return event
		}
	}
	return -1
}

// defects describes what went wrong; it is empty if nothing did.
func (t *tally) defects() string {
	switch {
	case t.lost() > 0:
		return fmt.Sprintf("missed %d of %d events, the first of them number %d", t.lost(), t.expected, t.firstLost()+1)
	case t.duplicates > 0:
		return fmt.Sprintf("saw %d events again", t.duplicates)
	case t.reordered > 0:
		return fmt.Sprintf("saw %d events after a newer one of the same object", t.reordered)
	case t.foreign > 0:
		return fmt.Sprintf("saw %d events that it had not selected", t.foreign)
	}
	return ""
}
