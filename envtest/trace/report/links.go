package report

import "snowglobe.test/envtest/trace"

// link leads from an event to one that came of it.
type link struct {
	from, to int
	how      relation
}

// relation says how two events are linked.
type relation int

const (
	led     relation = iota // a turn led to the operation of another
	during                  // it happened when a turn had been taken, before the next one
	ended                   // it ended what had begun
	answer                  // a client received the answer to a request
	seen                    // a watch received a change of the store
	changed                 // an answer tells of the change that its request made
)

// relationNames are how the page names the relations, from the cause and from the effect.
var relationNames = [][2]string{
	led:     {"led to turn", "caused by turn"},
	during:  {"let happen", "happened in turn"},
	ended:   {"ended by", "began with"},
	answer:  {"answered as", "answer to request"},
	seen:    {"seen by watch", "tells of change"},
	changed: {"reported in answer", "answers for change"},
}

// newLinks links causes and effects. Both ends of a link are events of the run.
func newLinks(recs []trace.Record, bars []bar) []link {
	l := linker{turns: map[int]int{}, requests: map[requestKey][]int{}, writes: map[int64]int{}, turn: -1}
	for _, b := range bars {
		if isSpan(recs[b.main].Event) && b.from != b.to && !b.open {
			l.add(b.from, b.to, ended)
		}
	}
	for i, rec := range recs {
		l.record(i, rec, recs)
	}
	return l.links
}

// isSpan reports whether a bar of the event is about one thing that begins and ends,
// not about a state that the next one replaces.
func isSpan(e trace.Event) bool {
	switch e.(type) {
	case trace.Check, trace.Note:
		return false
	}
	return true
}

type linker struct {
	links    []link
	turns    map[int]int          // by number
	requests map[requestKey][]int // those that ended and were not answered yet
	writes   map[int64]int        // by revision
	turn     int                  // the last one, -1 before the first
}

// requestKey is what the server and the client know of a request alike.
type requestKey struct{ plane, user, method, uri string }

func (l *linker) add(from, to int, how relation) { l.links = append(l.links, link{from, to, how}) }

func (l *linker) record(i int, rec trace.Record, recs []trace.Record) {
	switch e := rec.Event.(type) {
	case trace.Turn:
		if cause, ok := l.turns[e.Cause]; ok && e.Cause > 0 {
			l.add(cause, i, led)
		}
		l.turns[e.Number], l.turn = i, i
		return
	case trace.Request:
		if e.Phase == trace.End {
			key := requestKey{rec.ControlPlane, e.User, e.Method, e.URI}
			l.requests[key] = append(l.requests[key], i)
		}
	case trace.Answer:
		l.answered(i, rec, e)
	case trace.Write:
		l.writes[e.Revision] = i
	case trace.WatchEvent:
		if write, ok := l.writes[e.Object.Revision]; ok && e.Type != "BOOKMARK" {
			l.add(write, i, seen)
		}
	}
	// Time passes only when all is idle, so what happens at the moment of a turn is what
	// that turn has let happen.
	if l.turn >= 0 && recs[l.turn].Elapsed == rec.Elapsed {
		l.add(l.turn, i, during)
	}
}

func (l *linker) answered(i int, rec trace.Record, e trace.Answer) {
	key := requestKey{rec.ControlPlane, e.Client, e.Method, e.URI}
	if ended := l.requests[key]; len(ended) > 0 {
		l.add(ended[0], i, answer)
		l.requests[key] = ended[1:]
	}
	if !e.Writes() {
		return
	}
	for _, o := range e.Objects {
		if write, ok := l.writes[o.Revision]; ok {
			l.add(write, i, changed)
		}
	}
}
