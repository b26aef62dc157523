package events

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// Event is an event as it was recorded. The names are those of the events.k8s.io API; the
// older API, that of record.EventRecorder, has no related object and no action, and calls
// Regarding the involved object and Note the message.
type Event struct {
	// Regarding is the object that the event is about. There is no scheme to ask, so an
	// object that does not state its kind, such as one from a typed client, has the name of
	// its Go type as Kind and no APIVersion.
	Regarding corev1.ObjectReference
	// Related is a second object that the event involves, if there is one.
	Related *corev1.ObjectReference
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is why, in one word such as Scheduled.
	Reason string
	// Action is what the controller did, in one word such as Binding.
	Action string
	// Note is for people.
	Note string
	// Annotations are those of an AnnotatedEventf.
	Annotations map[string]string
	// Time is when it was recorded.
	Time time.Time
}

// String is the event's row in kubectl get events, without its age.
func (e Event) String() string {
	object := e.Regarding.Name
	if e.Regarding.Kind != "" {
		object = strings.ToLower(e.Regarding.Kind) + "/" + object
	}
	return fmt.Sprintf("%s   %s   %s   %s", e.Type, e.Reason, object, strings.TrimSpace(e.Note))
}

// refer returns a reference to an object, an empty one if there is no object or it has no
// metadata.
func refer(object runtime.Object) corev1.ObjectReference {
	if reference, ok := object.(*corev1.ObjectReference); ok {
		return *reference
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return corev1.ObjectReference{}
	}
	version, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	if kind == "" {
		kind = reflect.Indirect(reflect.ValueOf(object)).Type().Name()
	}
	return corev1.ObjectReference{
		APIVersion: version, Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(),
	}
}

// reference is a pointer to what refer returns, none without an object.
func reference(object runtime.Object) *corev1.ObjectReference {
	if object == nil {
		return nil
	}
	ref := refer(object)
	return &ref
}
