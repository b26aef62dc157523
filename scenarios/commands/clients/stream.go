package clients

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"snowglobe.test/internal/broadcast"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/engine"
)

// Stream is what runs in the background under a name and has events: a watch, an informer,
// a controller, a candidate, a log, or a request.
type Stream struct {
	cancel   context.CancelFunc
	running  sync.WaitGroup
	informer cache.SharedIndexInformer // nil for what has no cache

	mu      sync.Mutex
	events  []Event // those not yet taken
	arrived broadcast.News
}

// Event is an event of a stream.
type Event struct {
	Kind   watch.EventType
	Object *unstructured.Unstructured // nil for some kinds
	Line   string                     // of a log
}

// The kinds of events that are not those of a watch.
const (
	End        watch.EventType = "END"
	Line       watch.EventType = "LINE"       // of a log
	Leading    watch.EventType = "LEADING"    // of a candidate
	Lost       watch.EventType = "LOST"       // of a candidate
	Reconciled watch.EventType = "RECONCILED" // of a controller
	Failed     watch.EventType = "FAILED"     // of a controller
)

// Begin begins a stream under a name. The context that start is given ends with the stream,
// not with the command. client-go's log is dropped: what matters of it is in the story already.
func (c *Clients) Begin(name string, start func(ctx context.Context, s *Stream) error) error {
	if c.streams[name] != nil {
		return fmt.Errorf("%w: there is a watch %q already; end it with: unwatch %s", engine.ErrUsage, name, name)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(c.run.Background(), klog.Logger{}))
	s := &Stream{cancel: cancel}
	if err := start(ctx, s); err != nil {
		cancel()
		return err
	}
	c.streams[name] = s
	return nil
}

// stream finds a stream by its name.
func (c *Clients) stream(name string) (*Stream, error) {
	if found := c.streams[name]; found != nil {
		return found, nil
	}
	names := slices.Sorted(maps.Keys(c.streams))
	return nil, fmt.Errorf("%w: there is no watch %q%s; begin one with: watch %s RESOURCE", engine.ErrUsage, name, nearest.DidYouMean(name, names), name)
}

// Close ends all streams in the order of their names: the random order of a map would make
// runs with the same seed differ.
func (c *Clients) Close() {
	for _, name := range slices.Sorted(maps.Keys(c.streams)) {
		c.streams[name].end()
	}
	clear(c.streams)
}

// Go runs a part of the stream.
func (s *Stream) Go(f func()) { s.running.Go(f) }

// Inform runs an informer, whose cache the command "lister" reads.
func (s *Stream) Inform(ctx context.Context, informer cache.SharedIndexInformer) {
	s.informer = informer
	s.Go(func() { informer.RunWithContext(ctx) })
}

// end ends a stream and waits until nothing of it is left.
func (s *Stream) end() {
	s.cancel()
	s.running.Wait()
}

// Add adds an event.
func (s *Stream) Add(event Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
	s.arrived.Tell()
}

// next takes the next event, and waits for it.
func (s *Stream) next(ctx context.Context) (Event, error) {
	var event Event
	err := s.arrived.Await(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.events) == 0 {
			return false
		}
		event, s.events = s.events[0], s.events[1:]
		return true
	})
	if err != nil {
		return event, fmt.Errorf("no event came: %w", err)
	}
	return event, nil
}

// take takes all events that are there.
func (s *Stream) take() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events = nil
	return events
}

// String is the event on one line, such as "ADDED default/a", or "ERROR Expired".
func (e Event) String() string {
	if e.Object == nil {
		return strings.TrimSpace(string(e.Kind) + " " + e.Line)
	}
	what := cache.MetaObjectToName(e.Object).String()
	if reason, _, _ := unstructured.NestedString(e.Object.Object, "reason"); e.Kind == watch.Error {
		what = reason
	}
	return strings.TrimSpace(string(e.Kind) + " " + what)
}

// is reports whether the event is about the object, or for the reason, of that name.
func (e Event) is(name string) bool {
	if e.Object == nil {
		return e.Kind == Line && e.Line == name
	}
	if reason, _, _ := unstructured.NestedString(e.Object.Object, "reason"); e.Kind == watch.Error {
		return reason == name
	}
	return name == e.Object.GetName() || name == e.Object.GetNamespace()+"/"+e.Object.GetName()
}
