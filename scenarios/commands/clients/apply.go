package clients

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"snowglobe.test/internal/observe"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

func (c *Clients) Apply() engine.Command {
	return engine.Command{
		Name:    "apply",
		Args:    "[--expand] [--manager NAME] [--no-force] FILE...",
		Asserts: true,
		Summary: "create or change the objects in files, by server-side apply",
		Details: `FILE holds YAML or JSON documents; with --expand, $VARIABLE and ${VARIABLE} in it are
expanded. An object with generateName and no name is created. After a
CustomResourceDefinition, apply waits until the server that it asked serves the resource as
the definition says. It prints one line per object.

The field manager is called script, or NAME. It takes over fields from other managers;
with --no-force that is a conflict.`,
		Example: "apply widget.yaml\napply --manager painter --no-force widget.yaml",
		Files: func(flags *pflag.FlagSet, args []string) []engine.NamedFile {
			if expand, err := flags.GetBool("expand"); expand || err != nil {
				return engine.NamedFiles(nil, args...) // what is in them is not known yet
			}
			return engine.NamedFiles(CheckObjects, args...)
		},
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			expand := flags.Bool("expand", false, "")
			opts := metav1.ApplyOptions{}
			flags.StringVar(&opts.FieldManager, "manager", story.FieldManager, "")
			noForce := flags.Bool("no-force", false, "")
			return func(ctx context.Context, args []string) error {
				opts.Force = !*noForce
				for _, file := range args {
					text, err := c.run.ReadFile(file)
					if err != nil {
						return err
					}
					if *expand {
						text = c.run.Expand(text)
					}
					if err := c.applyAll(ctx, text, opts); err != nil {
						return fmt.Errorf("%s: %w", file, err)
					}
				}
				return nil
			}
		},
	}
}

func (c *Clients) applyAll(ctx context.Context, text string, opts metav1.ApplyOptions) error {
	objects, err := ReadObjects(text)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.apply(ctx, object, opts); err != nil {
			return fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName()+object.GetGenerateName(), err)
		}
	}
	return nil
}

// apply creates or changes an object, and waits until a new kind is served.
func (c *Clients) apply(ctx context.Context, object *unstructured.Unstructured, opts metav1.ApplyOptions) error {
	r, client, err := c.ClientOf(ctx, object)
	if err != nil {
		return err
	}
	var applied *unstructured.Unstructured
	asking, server := observe.WhoAnswers(ctx)
	if object.GetName() == "" && object.GetGenerateName() != "" {
		applied, err = client.Create(asking, object, metav1.CreateOptions{FieldManager: opts.FieldManager})
	} else {
		applied, err = client.Apply(asking, object.GetName(), object, opts)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(&c.run.Stdout, "%s/%s applied\n", r.GVR.GroupResource(), applied.GetName())
	if r.Kind.GroupKind() == crdKind {
		return c.awaitServed(ctx, client, applied.GetName(), *server)
	}
	return nil
}

var crdKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// discoveryPause is the time between two looks at discovery, which has no watch.
const discoveryPause = 10 * time.Millisecond

// awaitServed waits until a CRD is established, and served as it is, in all its versions, by the
// server that it was applied to. The others may be behind.
func (c *Clients) awaitServed(ctx context.Context, client dynamic.ResourceInterface, name, asked string) error {
	crd, err := awaitEstablished(ctx, client, name)
	if err != nil {
		return err
	}
	if asked != "" { // else a mutation has answered
		server, err := c.servers.Server([]string{asked})
		if err != nil {
			return err
		}
		if err := server.WaitServed(ctx, crd); err != nil {
			return err
		}
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		r, err := c.awaitDiscovered(ctx, kind)
		if err != nil {
			return err
		}
		// The resource's watch cache is new. Until it is filled, the server tells
		// clients to retry a list, and this one does.
		instances, err := c.clientFor(lookupAgent, r, metav1.NamespaceAll)
		if err != nil {
			return err
		}
		if _, err := instances.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return fmt.Errorf("it is established, but not served: %w", err)
		}
	}
	return nil
}

func (c *Clients) awaitDiscovered(ctx context.Context, kind schema.GroupVersionKind) (Resource, error) {
	for {
		r, err := c.resourceOf(ctx, kind)
		if err == nil {
			return r, nil
		}
		select {
		case <-time.After(discoveryPause):
		case <-ctx.Done():
			return r, fmt.Errorf("it is established, but not in discovery: %w: %w", context.Cause(ctx), err)
		}
	}
}

// awaitEstablished watches a CRD until it is established, and returns it.
func awaitEstablished(ctx context.Context, client dynamic.ResourceInterface, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	watcher, err := client.Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("watch: %v", event.Object)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
			return nil, err
		}
		if apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			return crd, nil
		}
	}
	return nil, fmt.Errorf("it was not established: %w", context.Cause(ctx))
}
