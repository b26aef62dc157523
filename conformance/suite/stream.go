package suite

import (
	"context"
	"fmt"
	"strconv"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is a watch that fails the case if an expected event does not come.
type stream struct {
	watch.Interface
	target *T
	asked  metav1.ListOptions
}

// Watch opens a watch. It is stopped when the case ends.
func (t *T) Watch(ctx context.Context, open func(context.Context, metav1.ListOptions) (watch.Interface, error),
	opts metav1.ListOptions) *stream {
	opened, err := open(ctx, opts)
	t.Must(err, "watch with %s", show(opts))
	t.watches = append(t.watches, opened)
	return &stream{Interface: opened, target: t, asked: opts}
}

func show(opts metav1.ListOptions) string {
	text := fmt.Sprintf("resourceVersion=%q match=%q labels=%q fields=%q bookmarks=%t", opts.ResourceVersion,
		opts.ResourceVersionMatch, opts.LabelSelector, opts.FieldSelector, opts.AllowWatchBookmarks)
	if opts.SendInitialEvents != nil {
		text += fmt.Sprintf(" initial=%t", *opts.SendInitialEvents)
	}
	return text
}

// Next returns the next event; the case fails if the stream or the context ends first.
func (s *stream) Next(ctx context.Context) watch.Event {
	select {
	case event, open := <-s.ResultChan():
		s.target.Expect(open).To(gomega.BeTrue(), "the server ended the watch (%s) instead of sending an event",
			show(s.asked))
		return event
	case <-ctx.Done():
		s.target.Expect(context.Cause(ctx)).NotTo(gomega.HaveOccurred(), "no event on the watch (%s)", show(s.asked))
		return watch.Event{}
	}
}

// NextConfigMap returns the object of the next event, which must have that type.
func (s *stream) NextConfigMap(ctx context.Context, kind watch.EventType) *corev1.ConfigMap {
	event := s.Next(ctx)
	s.target.Expect(event.Type).To(gomega.Equal(kind))
	object, ok := event.Object.(*corev1.ConfigMap)
	s.target.Expect(ok).To(gomega.BeTrue(), "the %s event carries a %T", kind, event.Object)
	return object
}

// Take returns the next n events.
func (s *stream) Take(ctx context.Context, n int) []watch.Event {
	events := make([]watch.Event, 0, n)
	for range n {
		events = append(events, s.Next(ctx))
	}
	return events
}

// Until returns the events up to and including the one with a type and an object's name.
// Events are in order, so anything missing before it will not come.
func (s *stream) Until(ctx context.Context, kind watch.EventType, name string) []watch.Event {
	var events []watch.Event
	for {
		event := s.Next(ctx)
		events = append(events, event)
		s.target.Expect(event.Type).NotTo(gomega.Equal(watch.Error), "the watch (%s) failed: %v", show(s.asked),
			event.Object)
		if event.Type == kind && nameOf(event) == name {
			return events
		}
	}
}

// Ended waits until the server ends the stream, and returns the remaining events.
func (s *stream) Ended(ctx context.Context) []watch.Event {
	var events []watch.Event
	for {
		select {
		case event, open := <-s.ResultChan():
			if !open {
				return events
			}
			events = append(events, event)
		case <-ctx.Done():
			s.target.Expect(context.Cause(ctx)).NotTo(gomega.HaveOccurred(), "the server did not end the watch (%s)",
				show(s.asked))
		}
	}
}

// Brief returns the type of each event and the name of its object.
func Brief(events []watch.Event) []string {
	lines := make([]string, 0, len(events))
	for _, event := range events {
		lines = append(lines, fmt.Sprint(event.Type, " ", nameOf(event)))
	}
	return lines
}

// Exact says of each event its type, and the object's name and version.
func Exact(events []watch.Event) []string {
	lines := Brief(events)
	for i, event := range events {
		lines[i] += "@" + VersionOf(event.Object)
	}
	return lines
}

func nameOf(event watch.Event) string {
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return fmt.Sprint(event.Object) // a Status
	}
	return object.GetName()
}

// VersionOf returns the resourceVersion of an object or a list.
func VersionOf(object any) string {
	common, err := meta.CommonAccessor(object)
	if err != nil {
		return ""
	}
	return common.GetResourceVersion()
}

// Number reads a resourceVersion: comparable within a resource type since KEP-5504.
func (t *T) Number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	t.Must(err, "resourceVersion %q is not a number", version)
	return n
}
