package clients

import (
	"context"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"snowglobe.test/scenarios/engine"
)

func (c *Clients) Watch() engine.Command {
	return engine.Command{
		Name: "watch",
		Args: "[-n NAMESPACE | -A] [-l SELECTOR] [--field-selector SELECTOR] " +
			"[--resource-version RV] [--bookmarks] [--initial-events] NAME RESOURCE",
		Asserts: true,
		Names:   c.ResourceAt(2),
		Summary: "watch a resource in the background, under a given name",
		Details: `"next" and "drain" take what it receives. Without --resource-version it begins
with the objects that exist. --initial-events asks for a streaming list: the objects
that exist, then a bookmark that marks their end. The watch ends with "unwatch", or with
its server; it is not restarted.`,
		Example: "watch settings configmaps\nnext settings ADDED default/a\nunwatch settings",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			namespace := NamespaceFlag(flags)
			all := flags.BoolP("all-namespaces", "A", false, "")
			var opts metav1.ListOptions
			flags.StringVarP(&opts.LabelSelector, "selector", "l", "", "")
			flags.StringVar(&opts.FieldSelector, "field-selector", "", "")
			flags.StringVar(&opts.ResourceVersion, "resource-version", "", "")
			flags.BoolVar(&opts.AllowWatchBookmarks, "bookmarks", false, "")
			initial := flags.Bool("initial-events", false, "")
			return func(ctx context.Context, args []string) error {
				if *all {
					*namespace = metav1.NamespaceAll
				}
				if *initial {
					opts.SendInitialEvents, opts.AllowWatchBookmarks = initial, true
					opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
				}
				_, client, err := c.clientOf(ctx, args[1], *namespace)
				if err != nil {
					return err
				}
				return c.watch(args[0], client, opts)
			}
		},
	}
}

func (c *Clients) Unwatch() engine.Command {
	return engine.Command{
		Name:       "unwatch",
		Args:       "NAME",
		Summary:    "end a watch, an informer, a controller or a candidate",
		Details:    `Events that were not taken are forgotten, and the name is free again.`,
		Example:    "unwatch settings",
		NoNegation: true,
		Run: func(_ context.Context, args []string) error {
			stream, err := c.stream(args[0])
			if err != nil {
				return err
			}
			stream.end()
			delete(c.streams, args[0])
			return nil
		},
	}
}

// watch begins a watch under a name.
func (c *Clients) watch(name string, client dynamic.ResourceInterface, opts metav1.ListOptions) error {
	return c.Begin(name, func(ctx context.Context, s *Stream) error {
		watcher, err := client.Watch(ctx, opts)
		if err != nil {
			return err
		}
		s.Go(func() {
			defer watcher.Stop()
			for event := range watcher.ResultChan() {
				s.Add(Event{Kind: event.Type, Object: asUnstructured(event.Object)})
			}
			s.Add(Event{Kind: End})
		})
		return nil
	})
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
