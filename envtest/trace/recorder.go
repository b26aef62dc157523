package trace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultLimit is how many records a Recorder keeps. A boot makes about a thousand.
const DefaultLimit = 1 << 16

// Record is an event with its sequence number, its time and its origin.
type Record struct {
	Seq          int64         `json:"seq"` // counts from 1, without gaps
	Time         time.Time     `json:"time"`
	Elapsed      time.Duration `json:"elapsedNanos"`           // since the recorder was made
	ControlPlane string        `json:"controlPlane,omitempty"` // the recorder's name
	Server       string        `json:"apiServer,omitempty"`    // which of several API servers recorded it; may be empty
	Event        Event         `json:"-"`
}

// String returns the record as one line of text for people.
func (r Record) String() string {
	return fmt.Sprintf("%s %s", elapsed(r.Elapsed), r.Event)
}

// Recorder orders the events of one control plane and keeps the newest. Its
// methods may be called from any goroutine. Make it with NewRecorder.
type Recorder struct {
	*recording
	server string
	// closed is set once the server is gone; nil for the control plane's recorder.
	closed *atomic.Bool
}

// recording is what the recorders of one control plane share. Its lock is never
// held while a subscriber runs.
type recording struct {
	name  string
	began time.Time
	limit int

	mu      sync.Mutex
	seq     int64
	ring    []Record // oldest at next once full
	next    int
	dropped int64
	waiters []*waiter

	subscribers []*subscriber // replaced, never modified: deliveries refer to it
	// queue holds the records not yet delivered to subscribers. One goroutine at
	// a time delivers them, so that all subscribers see the same order.
	queue      []delivery
	delivering bool
}

type waiter struct {
	match func(Record) bool
	found chan Record
}

type subscriber struct {
	fn        func(Record)
	cancelled atomic.Bool
}

// delivery is a record and everybody who had subscribed when it was made.
type delivery struct {
	Record
	to []*subscriber
}

// NewRecorder returns a recorder for the control plane of that name. It keeps
// the newest limit records; zero or less means DefaultLimit.
func NewRecorder(name string, limit int) *Recorder {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Recorder{recording: &recording{name: name, began: time.Now(), limit: limit}}
}

// For returns a recorder that adds to the same records, marked with the name of
// an API server, which may be empty. Closing it leaves the others open.
func (r *Recorder) For(server string) *Recorder {
	return &Recorder{recording: r.recording, server: server, closed: &atomic.Bool{}}
}

// Close makes a recorder that For returned drop everything from now on.
func (r *Recorder) Close() {
	if r.closed != nil {
		r.closed.Store(true)
	}
}

// Record adds an event and returns once every subscriber has received it. If
// another goroutine, or a subscriber further up the stack, is still delivering an
// earlier event, it delivers this one too, and Record returns at once.
func (r *Recorder) Record(e Event) {
	e = redacted(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil && r.closed.Load() {
		return
	}
	r.seq++
	now := time.Now()
	rec := Record{Seq: r.seq, Time: now, Elapsed: now.Sub(r.began), ControlPlane: r.name, Server: r.server, Event: e}
	r.keep(rec)
	r.waiters = slices.DeleteFunc(r.waiters, func(w *waiter) bool {
		if !w.match(rec) {
			return false
		}
		w.found <- rec
		return true
	})
	if len(r.subscribers) > 0 {
		r.queue = append(r.queue, delivery{rec, r.subscribers})
		r.deliver()
	}
}

// deliver empties the queue, unless another goroutine is doing so already. The
// caller holds mu; deliver unlocks it while a subscriber runs.
func (r *recording) deliver() {
	if r.delivering {
		return
	}
	r.delivering = true
	defer func() { r.delivering = false }() // a subscriber may panic
	for len(r.queue) > 0 {
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.tell(next)
	}
	r.queue = nil // frees the memory of a long queue
}

func (r *recording) tell(d delivery) {
	r.mu.Unlock()
	defer r.mu.Lock()
	for _, s := range d.to {
		if !s.cancelled.Load() {
			s.fn(d.Record)
		}
	}
}

// keep puts a record in the ring; the caller holds mu.
func (r *recording) keep(rec Record) {
	if len(r.ring) < r.limit {
		r.ring = append(r.ring, rec)
		return
	}
	r.ring[r.next] = rec
	r.next = (r.next + 1) % r.limit
	r.dropped++
}

// kept returns a copy of the ring, oldest first; the caller holds mu.
func (r *recording) kept() []Record { return slices.Concat(r.ring[r.next:], r.ring[:r.next]) }

// Records returns a copy of the records kept, oldest first.
func (r *Recorder) Records() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept()
}

// Clear forgets all records and subscribers: sequence numbers and times begin anew.
func (r *Recorder) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.subscribers {
		s.cancelled.Store(true)
	}
	r.subscribers, r.ring, r.next, r.dropped, r.seq, r.began = nil, nil, 0, 0, 0, time.Now()
}

// Seq returns the sequence number of the newest record, 0 if there is none.
func (r *Recorder) Seq() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// Dropped returns how many of the oldest records have been dropped to make room.
func (r *Recorder) Dropped() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Await returns the first record that matches, kept or still to come. If ctx ends
// first, the error wraps its cause: give the context a cause that says what is
// being waited for. match must not block and must not call the recorder.
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters = slices.DeleteFunc(r.waiters, func(other *waiter) bool { return other == w })
	select {
	case rec := <-w.found: // it came just as ctx ended
		return rec, nil
	default:
	}
	last := "nothing has happened"
	if recs := r.kept(); len(recs) > 0 {
		last = "the last event is " + recs[len(recs)-1].String()
	}
	return Record{}, fmt.Errorf("trace of %q: waiting for an event: %w (%s)", r.name, context.Cause(ctx), last)
}

// findOrWait returns a kept record that matches, or registers the waiter in one step.
func (r *Recorder) findOrWait(w *waiter) (Record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recs := r.kept()
	if i := slices.IndexFunc(recs, w.match); i >= 0 {
		return recs[i], true
	}
	r.waiters = append(r.waiters, w)
	return Record{}, false
}

// Subscribe calls fn for every later record, in order and one at a time, on a recording
// goroutine. fn may call the recorder and cancel, but should be quick: delivery waits
// for it. Nothing recorded after cancel has returned is delivered to it.
func (r *Recorder) Subscribe(fn func(Record)) (cancel func()) {
	s := &subscriber{fn: fn}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(slices.Clone(r.subscribers), s)
	return func() {
		s.cancelled.Store(true)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.subscribers = slices.DeleteFunc(slices.Clone(r.subscribers), func(other *subscriber) bool { return other == s })
	}
}
