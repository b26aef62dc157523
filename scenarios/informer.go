package scenarios

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var informerCommand = command{
	name:  "informer",
	args:  "[-n NAMESPACE | -A] [-l SELECTOR] NAME RESOURCE",
	least: 2, most: 2,
	summary: "run an informer in the background, as a controller does",
	details: `It is client-go's: it lists, watches, and recovers when the watch breaks. "event" and
"events" take what its handlers are told, "cached" looks into its cache, and
"unwatch" ends it. It keeps using the user and path that are current when it starts.`,
	example: "informer widgets -A widgets.example.com\neventually cached widgets default/blue\nevents widgets",
	prepare: func(flags *pflag.FlagSet) action {
		namespace := namespaceFlag(flags)
		all := flags.BoolP("all-namespaces", "A", false, "")
		selector := flags.StringP("selector", "l", "", "")
		return func(ctx context.Context, s *session, args []string) error {
			if *all {
				*namespace = metav1.NamespaceAll
			}
			r, err := s.resource(ctx, args[1])
			if err != nil {
				return err
			}
			if !r.namespaced {
				*namespace = metav1.NamespaceAll
			}
			return s.inform(args[0], r, *namespace, *selector)
		}
	},
}

var cachedCommand = command{
	name:  "cached",
	args:  "INFORMER [OBJECT]",
	least: 1, most: 2,
	summary: "look into the cache of an informer, as a lister does",
	details: `It prints the keys of all objects, sorted, or the OBJECT as YAML, which is NAME or
NAMESPACE/NAME. It fails if the informer has not synced yet, or has no such object.`,
	example: "cached widgets default/blue\nstdout 'color: blue'",
	run: func(_ context.Context, s *session, args []string) error {
		stream, err := s.stream(args[0])
		if err != nil {
			return err
		}
		if stream.informer == nil {
			return fmt.Errorf("%w: %q is a watch, which has no cache; begin an informer", errUsage, args[0])
		}
		if !stream.informer.HasSynced() {
			return fmt.Errorf("the informer %q has not synced yet", args[0])
		}
		store := stream.informer.GetStore()
		if len(args) == 1 {
			for _, key := range slices.Sorted(slices.Values(store.ListKeys())) {
				fmt.Fprintln(&s.out, key)
			}
			return nil
		}
		for _, key := range []string{args[1], defaultNamespace + "/" + args[1]} {
			if found, exists, _ := store.GetByKey(key); exists {
				return s.printObject(found.(*unstructured.Unstructured).DeepCopy())
			}
		}
		return fmt.Errorf("the informer %q has no object %q", args[0], args[1])
	},
}

// informerAgent is the user agent of the script's informers.
const informerAgent = "script-informer"

// inform runs an informer under a name, as the user and by the path of now.
func (s *session) inform(name string, r apiResource, namespace, selector string) error {
	if err := s.free(name); err != nil {
		return err
	}
	config := rest.CopyConfig(s.identity)
	config.UserAgent = informerAgent
	s.translate(config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := s.background()
	informer := dynamicinformer.NewFilteredDynamicInformer(client, r.gvr, namespace, 0, cache.Indexers{},
		func(opts *metav1.ListOptions) { opts.LabelSelector = selector }).Informer()
	begun := newStream(cancel)
	begun.informer = informer
	tell := func(kind watch.EventType, object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		begun.add(streamEvent{kind: kind, object: object.(*unstructured.Unstructured).DeepCopy()})
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(watch.Added, object) },
		UpdateFunc: func(_, object any) { tell(watch.Modified, object) },
		DeleteFunc: func(object any) { tell(watch.Deleted, object) },
	})
	if err != nil {
		cancel()
		return err
	}
	begun.running.Go(func() { informer.RunWithContext(ctx) })
	s.streams[name] = begun
	return nil
}
