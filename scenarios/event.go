package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"snowglobe.test/internal/nearest"
)

// eventTypes are those that "event" waits for.
var eventTypes = []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error, leadingEvent, lostEvent, reconciledEvent, failedEvent, lineEvent, endEvent}

var eventCommand = command{
	name:  "event",
	args:  "NAME TYPE [OBJECT|REASON|LINE]",
	least: 2, most: 3,
	summary: "take the next event of a watch, an informer, a candidate or a controller, and fail unless it is the given one",
	details: `It waits for the event, and prints its object as YAML. The types are ADDED, MODIFIED and
DELETED; for a watch also BOOKMARK, ERROR, with a reason such as Expired, and END; for a
candidate LEADING, LOST and END; for a controller RECONCILED and FAILED; for a log LINE
and END; for a request in the background the status code of its answer, or ERROR. OBJECT
is NAME or NAMESPACE/NAME.`,
	example: "event settings MODIFIED default/a\nstdout 'color: red'\nevent settings ERROR Expired\nevent settings END",
	run: func(ctx context.Context, s *session, args []string) error {
		kind := watch.EventType(args[1])
		if !slices.Contains(eventTypes, kind) && !isStatusCode(kind) {
			return fmt.Errorf("%w: no event is of type %q; the types are %s", errUsage, kind, nearest.Either(eventTypes))
		}
		stream, err := s.stream(args[0])
		if err != nil {
			return err
		}
		event, err := stream.next(ctx)
		if err != nil {
			return err
		}
		if err := s.printObject(event.object); err != nil {
			return err
		}
		if event.kind == kind && (len(args) == 2 || event.is(args[2])) {
			return nil
		}
		return fmt.Errorf("the next event of %s is %s, want %s", args[0], event, strings.Join(args[1:], " "))
	},
}

var eventsCommand = command{
	name:  "events",
	args:  "NAME",
	least: 1, most: 1,
	summary: "take and print all events that a watch, an informer or a candidate has had so far",
	details: `It prints a line for each, such as "ADDED default/a", and does not wait. After
"settle" nothing more is on its way.`,
	example: "settle\nevents settings\nstdout '^ADDED default/a$'",
	run: func(_ context.Context, s *session, args []string) error {
		stream, err := s.stream(args[0])
		if err != nil {
			return err
		}
		for _, event := range stream.take() {
			fmt.Fprintln(&s.out, event)
		}
		return nil
	},
}

// is reports whether the event is about the object, or for the reason, of that name.
func (e streamEvent) is(name string) bool {
	if e.object == nil {
		return e.kind == lineEvent && e.line == name
	}
	if reason, _, _ := unstructured.NestedString(e.object.Object, "reason"); e.kind == watch.Error {
		return reason == name
	}
	return name == e.object.GetName() || name == e.object.GetNamespace()+"/"+e.object.GetName()
}

// printObject prints an object, without what nobody reads, as YAML. Nil is nothing.
func (s *session) printObject(object *unstructured.Unstructured) error {
	if object == nil {
		return nil
	}
	object.SetManagedFields(nil)
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return err
	}
	s.out.Write(text)
	return nil
}

// asUnstructured is any object of a dynamic client's watch: errors come as a Status.
func asUnstructured(object runtime.Object) *unstructured.Unstructured {
	if found, ok := object.(*unstructured.Unstructured); ok {
		return found
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		content = map[string]any{"kind": "Status", "status": metav1.StatusFailure, "message": err.Error()}
	}
	return &unstructured.Unstructured{Object: content}
}
