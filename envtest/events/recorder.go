package events

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

var _ record.EventRecorderLogger = (*Recorder)(nil)

// Recorder records events in memory. It is a record.EventRecorder itself; for the newer API
// see [Recorder.EventsV1]. The zero value is ready for use. All methods may be called from
// any goroutine, and none but Await waits for anything.
type Recorder struct {
	mu        sync.Mutex
	events    []Event
	forgotten int                        // events before those, which Reset has dropped
	waiting   map[chan struct{}]struct{} // of each Await
}

// Event implements record.EventRecorder: it records an event about an object.
func (r *Recorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.record(Event{Regarding: refer(object), Type: eventtype, Reason: reason, Note: message})
}

// Eventf is Event with a message formatted by fmt.Sprintf.
func (r *Recorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// AnnotatedEventf is Eventf with annotations.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	r.record(Event{
		Regarding: refer(object), Annotations: maps.Clone(annotations),
		Type: eventtype, Reason: reason, Note: fmt.Sprintf(messageFmt, args...),
	})
}

// WithLogger implements record.EventRecorderLogger: it returns the Recorder, which logs
// nothing.
func (r *Recorder) WithLogger(klog.Logger) record.EventRecorderLogger {
	return r
}

// All returns the events since the beginning or the last Reset, oldest first. What they
// refer to is shared and must not be changed.
func (r *Recorder) All() []Event {
	events, _ := r.since(0)
	return slices.Clone(events)
}

// Reset forgets the events. A test that lets a controller run for a long time needs it,
// since nothing else removes events. An Await in progress continues with the events that
// follow.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten += len(r.events)
	r.events = nil
}

// Await returns the oldest event that matches, immediately if it has already been recorded.
// If the context ends first, the error lists the recorded events. match may call the
// Recorder's methods.
func (r *Recorder) Await(ctx context.Context, match func(Event) bool) (Event, error) {
	// Made here, so that it belongs to the synctest bubble of whoever waits.
	recorded := make(chan struct{}, 1)
	r.listen(recorded)
	defer r.leave(recorded)
	for next := 0; ; {
		var events []Event
		events, next = r.since(next)
		if i := slices.IndexFunc(events, match); i >= 0 {
			return events[i], nil
		}
		if ctx.Err() != nil {
			return Event{}, fmt.Errorf("await an event: %w; %s", context.Cause(ctx), describe(r.All()))
		}
		select {
		case <-recorded:
		case <-ctx.Done():
		}
	}
}

// record keeps an event and wakes those who wait.
func (r *Recorder) record(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Time = time.Now()
	r.events = append(r.events, e)
	for recorded := range r.waiting {
		select {
		case recorded <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
}

// since returns the events from a number on, in the order of all that were ever recorded,
// and the number of the one that will follow. They do not change any more.
func (r *Recorder) since(number int) ([]Event, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.forgotten + len(r.events)
	return r.events[max(number-r.forgotten, 0):], next
}

func (r *Recorder) listen(recorded chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[chan struct{}]struct{}{}
	}
	r.waiting[recorded] = struct{}{}
}

func (r *Recorder) leave(recorded chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, recorded)
}

// maxListed is how many events an error lists, the last ones.
const maxListed = 50

// describe says which events were recorded.
func describe(events []Event) string {
	if len(events) == 0 {
		return "none was recorded"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d were recorded", len(events))
	if before := len(events) - maxListed; before > 0 {
		fmt.Fprintf(&b, ", the last %d of which are", maxListed)
		events = events[before:]
	}
	b.WriteString(":")
	for _, e := range events {
		b.WriteString("\n\t" + e.String())
	}
	return b.String()
}
