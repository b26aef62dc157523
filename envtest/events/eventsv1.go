package events

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// EventsV1Recorder is an events.EventRecorder that records in a Recorder, with annotations
// if asked to, as the broadcaster's recorders do.
type EventsV1Recorder struct {
	recorder *Recorder
}

var (
	_ events.EventRecorderLogger    = EventsV1Recorder{}
	_ events.AnnotatedEventRecorder = EventsV1Recorder{}
)

// EventsV1 returns a recorder for the events.k8s.io/v1 API, which client-go has in
// tools/events. What it records is added to the Recorder's own events.
func (r *Recorder) EventsV1() EventsV1Recorder {
	return EventsV1Recorder{r}
}

// Eventf records an event about an object and, unless it is nil, a related one; its note is
// made by fmt.Sprintf.
func (e EventsV1Recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	e.AnnotatedEventf(regarding, related, nil, eventtype, reason, action, note, args...)
}

// AnnotatedEventf is Eventf with annotations.
func (e EventsV1Recorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	e.recorder.record(Event{
		Regarding: refer(regarding), Related: reference(related), Annotations: maps.Clone(annotations),
		Type: eventtype, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...),
	})
}

// WithLogger returns the same recorder, which logs nothing.
func (e EventsV1Recorder) WithLogger(klog.Logger) events.EventRecorderLogger {
	return e
}
