package trace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultLimit is how many records a Recorder keeps unless told otherwise. A
// boot of the whole chain makes about a thousand.
const DefaultLimit = 1 << 16

// Record is an event with its place in time.
type Record struct {
	Seq          int64 // 1 for the recorder's first, without gaps
	Time         time.Time
	Elapsed      time.Duration // since the recorder was made
	ControlPlane string        // the recorder's name
	Server       string        // which of several API servers recorded it, else empty
	Event        Event
}

// String is the record as one line of text for people.
func (r Record) String() string {
	return fmt.Sprintf("%s %s", elapsed(r.Elapsed), r.Event)
}

// Recorder puts the events of one control plane in order and keeps the newest
// of them. Its methods may be called from any goroutine. Make it with
// NewRecorder.
type Recorder struct {
	*recording
	server string
	// closed keeps a server that is gone from adding to what has happened; nil
	// for the recorder of all.
	closed *atomic.Bool
}

// recording is what the recorders of one control plane share.
type recording struct {
	name  string
	began time.Time
	limit int

	// order is held from the making of a record until all have been told of
	// it, so that everybody sees the same order.
	order   sync.Mutex
	seq     int64
	waiters []*waiter

	// mu guards what may be looked at while somebody is being told.
	mu          sync.Mutex
	ring        []Record // oldest at next once full
	next        int
	dropped     int64
	subscribers []*subscriber // replaced, never changed
}

type waiter struct {
	match func(Record) bool
	found chan Record
}

type subscriber struct{ fn func(Record) }

// NewRecorder starts a record for the control plane of that name. It keeps
// the newest limit records; zero or less means DefaultLimit.
func NewRecorder(name string, limit int) *Recorder {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Recorder{recording: &recording{name: name, began: time.Now(), limit: limit}}
}

// For returns a recorder that adds to the same records in the name of one of
// several API servers. Whether or not there is a name, Close ends it alone.
func (r *Recorder) For(server string) *Recorder {
	return &Recorder{recording: r.recording, server: server, closed: &atomic.Bool{}}
}

// Close makes a recorder of For drop what it is given from now on.
func (r *Recorder) Close() {
	if r.closed != nil {
		r.closed.Store(true)
	}
}

// Record adds an event. It returns after every subscriber has been told.
func (r *Recorder) Record(e Event) {
	r.order.Lock()
	defer r.order.Unlock()
	if r.closed != nil && r.closed.Load() {
		return
	}
	r.seq++
	now := time.Now()
	rec := Record{Seq: r.seq, Time: now, Elapsed: now.Sub(r.began), ControlPlane: r.name, Server: r.server, Event: e}
	subscribers := r.keep(rec)
	r.waiters = slices.DeleteFunc(r.waiters, func(w *waiter) bool {
		if !w.match(rec) {
			return false
		}
		w.found <- rec
		return true
	})
	for _, s := range subscribers {
		s.fn(rec)
	}
}

// keep puts a record in the ring and returns who wants to hear of it.
func (r *recording) keep(rec Record) []*subscriber {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < r.limit {
		r.ring = append(r.ring, rec)
	} else {
		r.ring[r.next] = rec
		r.next = (r.next + 1) % r.limit
		r.dropped++
	}
	return r.subscribers
}

// Records returns a copy of what is kept, oldest first.
func (r *Recorder) Records() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.ring[r.next:], r.ring[:r.next])
}

// Dropped returns how many of the oldest records did not fit any more.
func (r *Recorder) Dropped() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Await returns the first record that matches, among those kept and those to
// come. When ctx ends first, the error wraps its cause: give the context a
// cause that names what is being waited for. match must not block and must
// not call the recorder.
func (r *Recorder) Await(ctx context.Context, match func(Record) bool) (Record, error) {
	w := &waiter{match: match, found: make(chan Record, 1)}
	if rec, ok := r.findOrWait(w); ok {
		return rec, nil
	}
	select {
	case rec := <-w.found:
		return rec, nil
	case <-ctx.Done():
	}
	r.order.Lock()
	defer r.order.Unlock()
	r.waiters = slices.DeleteFunc(r.waiters, func(other *waiter) bool { return other == w })
	select {
	case rec := <-w.found: // at the last moment
		return rec, nil
	default:
	}
	last := "nothing has happened"
	if recs := r.Records(); len(recs) > 0 {
		last = "the last event is " + recs[len(recs)-1].String()
	}
	return Record{}, fmt.Errorf("trace of %q: waiting for an event: %w (%s)", r.name, context.Cause(ctx), last)
}

// findOrWait looks among the records kept and, if none matches, enlists the
// waiter before the next can be made.
func (r *Recorder) findOrWait(w *waiter) (Record, bool) {
	r.order.Lock()
	defer r.order.Unlock()
	recs := r.Records()
	if i := slices.IndexFunc(recs, w.match); i >= 0 {
		return recs[i], true
	}
	r.waiters = append(r.waiters, w)
	return Record{}, false
}

// Subscribe calls fn for every later record, in order, one at a time, before
// Record returns. fn must not block; it may look at Records but must not call
// Record or Await. After cancel has returned, fn is not called for any event
// recorded from then on.
func (r *Recorder) Subscribe(fn func(Record)) (cancel func()) {
	s := &subscriber{fn}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(slices.Clone(r.subscribers), s)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.subscribers = slices.DeleteFunc(slices.Clone(r.subscribers), func(other *subscriber) bool { return other == s })
	}
}
