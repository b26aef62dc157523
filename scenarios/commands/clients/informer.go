package clients

import (
	"context"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"snowglobe.test/scenarios/engine"
)

func (c *Clients) Informer() engine.Command {
	return engine.Command{
		Name:    "informer",
		Args:    "[-n NAMESPACE | -A] [-l SELECTOR] NAME RESOURCE",
		Names:   c.ResourceAt(2),
		Summary: "run an informer in the background, as a controller does",
		Details: `It is client-go's: it lists, watches, and recovers when the watch breaks. "next" and
"drain" take what its handlers are told, "lister" looks into its cache, and
"unwatch" ends it. It keeps using the user and path that are current when it starts.`,
		Example: "informer widgets -A widgets.example.com\neventually lister widgets default/blue\ndrain widgets",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			namespace := NamespaceFlag(flags)
			all := flags.BoolP("all-namespaces", "A", false, "")
			selector := flags.StringP("selector", "l", "", "")
			return func(ctx context.Context, args []string) error {
				if *all {
					*namespace = metav1.NamespaceAll
				}
				r, err := c.Resource(ctx, args[1])
				if err != nil {
					return err
				}
				if !r.Namespaced {
					*namespace = metav1.NamespaceAll
				}
				return c.inform(args[0], r, *namespace, *selector)
			}
		},
	}
}

// informerAgent is the user agent of the script's informers.
const informerAgent = "script-informer"

// inform runs an informer under a name, as the user and by the path of now.
func (c *Clients) inform(name string, r Resource, namespace, selector string) error {
	return c.Begin(name, func(ctx context.Context, s *Stream) error {
		client, err := c.Dynamic(informerAgent)
		if err != nil {
			return err
		}
		informer := dynamicinformer.NewFilteredDynamicInformer(client, r.GVR, namespace, 0, cache.Indexers{},
			func(opts *metav1.ListOptions) { opts.LabelSelector = selector }).Informer()
		tell := func(kind watch.EventType, object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			s.Add(Event{Kind: kind, Object: object.(*unstructured.Unstructured).DeepCopy()})
		}
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { tell(watch.Added, object) },
			UpdateFunc: func(_, object any) { tell(watch.Modified, object) },
			DeleteFunc: func(object any) { tell(watch.Deleted, object) },
		})
		if err == nil {
			s.Inform(ctx, informer)
		}
		return err
	})
}
