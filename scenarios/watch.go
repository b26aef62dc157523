package scenarios

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"snowglobe.test/internal/nearest"
)

var watchCommand = command{
	name:  "watch",
	args:  "[-n NAMESPACE | -A] [-l SELECTOR] [--field-selector SELECTOR] [--resource-version RV] [--bookmarks] [--initial-events] NAME RESOURCE",
	least: 2, most: 2,
	summary: "watch a resource in the background, under a given name",
	details: `"event" and "events" take what it receives. Without --resource-version it begins
with the objects that exist. --initial-events asks for a streaming list: the objects
that exist, then a bookmark that marks their end. The watch ends with "unwatch", or with
its server; it is not restarted.`,
	example: "watch settings configmaps\nevent settings ADDED default/a\nunwatch settings",
	prepare: func(flags *pflag.FlagSet) action {
		namespace := namespaceFlag(flags)
		all := flags.BoolP("all-namespaces", "A", false, "")
		var opts metav1.ListOptions
		flags.StringVarP(&opts.LabelSelector, "selector", "l", "", "")
		flags.StringVar(&opts.FieldSelector, "field-selector", "", "")
		flags.StringVar(&opts.ResourceVersion, "resource-version", "", "")
		flags.BoolVar(&opts.AllowWatchBookmarks, "bookmarks", false, "")
		initial := flags.Bool("initial-events", false, "")
		return func(ctx context.Context, s *session, args []string) error {
			if *all {
				*namespace = metav1.NamespaceAll
			}
			if *initial {
				opts.SendInitialEvents, opts.AllowWatchBookmarks = initial, true
				opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
			}
			_, client, err := s.clientOf(ctx, args[1], *namespace)
			if err != nil {
				return err
			}
			return s.watch(args[0], client, opts)
		}
	},
}

var unwatchCommand = command{
	name:  "unwatch",
	args:  "NAME",
	least: 1, most: 1,
	summary:    "end a watch, an informer, a controller or a candidate",
	details:    `Events that were not taken are forgotten, and the name is free again.`,
	example:    "unwatch settings",
	noNegation: true,
	run: func(_ context.Context, s *session, args []string) error {
		stream, err := s.stream(args[0])
		if err != nil {
			return err
		}
		stream.end()
		delete(s.streams, args[0])
		return nil
	},
}

// stream is a watch, an informer, a controller or a candidate in the background.
type stream struct {
	cancel   context.CancelFunc
	running  sync.WaitGroup
	informer cache.SharedIndexInformer // nil for a watch

	mu      sync.Mutex
	events  []streamEvent // those not yet taken
	arrived chan struct{} // closed and replaced with each event
}

// streamEvent is an event of a watch, or with the type END its end.
type streamEvent struct {
	kind   watch.EventType
	object *unstructured.Unstructured // nil for END and LINE
	line   string                     // of a log
}

const endEvent watch.EventType = "END"

// watch begins a watch under a name.
func (s *session) watch(name string, client dynamic.ResourceInterface, opts metav1.ListOptions) error {
	if err := s.free(name); err != nil {
		return err
	}
	ctx, cancel := s.background()
	watcher, err := client.Watch(ctx, opts)
	if err != nil {
		cancel()
		return err
	}
	begun := newStream(cancel)
	begun.running.Go(func() {
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			begun.add(streamEvent{kind: event.Type, object: asUnstructured(event.Object)})
		}
		begun.add(streamEvent{kind: endEvent})
	})
	s.streams[name] = begun
	return nil
}

// background is the context of a stream, which outlives its command. client-go logs to
// nobody: what matters of it is in the story already.
func (s *session) background() (context.Context, context.CancelFunc) {
	return context.WithCancel(klog.NewContext(context.WithoutCancel(s.outer), klog.Logger{}))
}

// free is an error if there is a stream of that name.
func (s *session) free(name string) error {
	if s.streams[name] != nil {
		return fmt.Errorf("%w: there is a watch %q already; end it with: unwatch %s", errUsage, name, name)
	}
	return nil
}

// stream finds a watch by its name.
func (s *session) stream(name string) (*stream, error) {
	if found := s.streams[name]; found != nil {
		return found, nil
	}
	var names []string
	for known := range s.streams {
		names = append(names, known)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("%w: there is no watch %q%s; begin one with: watch %s RESOURCE", errUsage, name, nearest.DidYouMean(name, names), name)
}

// endStreams ends all streams, in the order of their names: the seed decides the rest.
func (s *session) endStreams() {
	for _, name := range slices.Sorted(maps.Keys(s.streams)) {
		s.streams[name].end()
	}
	clear(s.streams)
}

func newStream(cancel context.CancelFunc) *stream {
	return &stream{cancel: cancel, arrived: make(chan struct{})}
}

// end ends a stream and waits until nothing of it is left.
func (w *stream) end() {
	w.cancel()
	w.running.Wait()
}

func (w *stream) add(event streamEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
	close(w.arrived)
	w.arrived = make(chan struct{})
}

// next takes the next event, and waits for it.
func (w *stream) next(ctx context.Context) (streamEvent, error) {
	for {
		w.mu.Lock()
		arrived := w.arrived
		if len(w.events) > 0 {
			event := w.events[0]
			w.events = w.events[1:]
			w.mu.Unlock()
			return event, nil
		}
		w.mu.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
			return streamEvent{}, fmt.Errorf("no event came: %w", context.Cause(ctx))
		}
	}
}

// take takes all events that are there.
func (w *stream) take() []streamEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// String is the event on one line, such as "ADDED default/a", or "ERROR Expired".
func (e streamEvent) String() string {
	if e.object == nil {
		return strings.TrimSpace(string(e.kind) + " " + e.line)
	}
	what := e.object.GetName()
	if namespace := e.object.GetNamespace(); namespace != "" {
		what = namespace + "/" + what
	}
	if reason, _, _ := unstructured.NestedString(e.object.Object, "reason"); e.kind == watch.Error {
		what = reason
	}
	return strings.TrimSpace(string(e.kind) + " " + what)
}
