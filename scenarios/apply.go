package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// fieldManager owns the fields that scripts apply.
const fieldManager = "script"

// applyQuery is the query of every apply request.
const applyQuery = "?fieldManager=" + fieldManager + "&force=true"

var applyCommand = command{
	name:  "apply",
	args:  "[--expand] [--manager NAME] [--no-force] FILE...",
	least: 1, most: anyNumber,
	summary: "create or change the objects in files, by server-side apply",
	details: `FILE holds YAML or JSON documents; with --expand, $VARIABLE and ${VARIABLE} in it are
expanded. An object with generateName and no name is created. After a
CustomResourceDefinition, apply waits until the server serves the resource. It prints one
line per object.

The field manager is called script, or NAME. It takes over fields from other managers;
with --no-force that is a conflict.`,
	example: "apply widget.yaml\napply --manager painter --no-force widget.yaml",
	prepare: func(flags *pflag.FlagSet) action {
		expand := flags.Bool("expand", false, "")
		opts := metav1.ApplyOptions{}
		flags.StringVar(&opts.FieldManager, "manager", fieldManager, "")
		noForce := flags.Bool("no-force", false, "")
		return func(ctx context.Context, s *session, args []string) error {
			opts.Force = !*noForce
			for _, file := range args {
				text := s.ts.ReadFile(file)
				if *expand {
					text = os.Expand(text, s.ts.Getenv)
				}
				if err := s.applyAll(ctx, text, opts); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
			return nil
		}
	},
}

func (s *session) applyAll(ctx context.Context, text string, opts metav1.ApplyOptions) error {
	objects, err := readObjects(text)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := s.apply(ctx, object, opts); err != nil {
			return fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName()+object.GetGenerateName(), err)
		}
	}
	return nil
}

func readObjects(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLToJSONDecoder(strings.NewReader(text))
	for number := 1; ; number++ {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetAPIVersion() == "" || object.GetKind() == "" {
			return nil, fmt.Errorf("document %d is not an object: it lacks an apiVersion or a kind", number)
		}
		objects = append(objects, object)
	}
	if len(objects) == 0 {
		return nil, errors.New("no object in the file")
	}
	return objects, nil
}

// apply creates or changes an object, and waits until a new kind is served.
func (s *session) apply(ctx context.Context, object *unstructured.Unstructured, opts metav1.ApplyOptions) error {
	r, err := s.resourceOf(ctx, object.GroupVersionKind())
	if err != nil {
		return err
	}
	if r.namespaced && object.GetNamespace() == "" {
		object.SetNamespace(defaultNamespace)
	}
	client, err := s.client(r, object.GetNamespace())
	if err != nil {
		return err
	}
	var applied *unstructured.Unstructured
	if object.GetName() == "" && object.GetGenerateName() != "" {
		applied, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: opts.FieldManager})
	} else {
		applied, err = client.Apply(ctx, object.GetName(), object, opts)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(&s.out, "%s/%s applied\n", r.gvr.GroupResource(), applied.GetName())
	if r.kind.GroupKind() == crdKind {
		return s.awaitServed(ctx, client, applied.GetName())
	}
	return nil
}

var crdKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// discoveryPause is the time between two looks at discovery, which has no watch.
const discoveryPause = 10 * time.Millisecond

// awaitServed waits until a CRD is established and all its versions are served.
func (s *session) awaitServed(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	crd, err := awaitEstablished(ctx, client, name)
	if err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		r, err := s.awaitDiscovered(ctx, kind)
		if err != nil {
			return err
		}
		// The resource's watch cache is new. Until it is filled, the server tells
		// clients to retry a list, and this one does.
		instances, err := s.clientFor(lookupAgent, r, metav1.NamespaceAll)
		if err != nil {
			return err
		}
		if _, err := instances.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return fmt.Errorf("it is established, but not served: %w", err)
		}
	}
	return nil
}

func (s *session) awaitDiscovered(ctx context.Context, kind schema.GroupVersionKind) (apiResource, error) {
	for {
		r, err := s.resourceOf(ctx, kind)
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
