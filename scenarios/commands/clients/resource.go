package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

// Resource is a resource that the server serves.
type Resource struct {
	GVR        schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	names      []string // all names that a script may use for it
}

// Resources asks the server which resources it serves, preferred versions first.
// If some groups fail, it returns the others along with the error.
func (c *Clients) Resources(ctx context.Context) ([]Resource, error) {
	config, err := c.Config(lookupAgent)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResourcesWithContext(ctx)
	var found []Resource
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			return nil, fmt.Errorf("discovery: %w", parseErr)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue // a subresource
			}
			names := append([]string{r.Name, r.SingularName, strings.ToLower(r.Kind)}, r.ShortNames...)
			for _, name := range slices.Clone(names) {
				names = append(names, name+"."+gv.Group, name+"."+gv.Version+"."+gv.Group)
			}
			found = append(found, Resource{GVR: gv.WithResource(r.Name), Kind: gv.WithKind(r.Kind), Namespaced: r.Namespaced, names: names})
		}
	}
	return found, err
}

// Resource finds a resource by any name: "configmaps", "cm", "widgets.example.com".
func (c *Clients) Resource(ctx context.Context, name string) (Resource, error) {
	r, known, err := c.find(ctx, func(r Resource) bool { return slices.Contains(r.names, strings.ToLower(name)) })
	switch {
	case r != nil:
		return *r, nil
	case err != nil:
		return Resource{}, fmt.Errorf("which resource is %q: %w", name, err)
	}
	var names []string
	for _, r := range known {
		names = append(names, r.GVR.Resource)
	}
	return Resource{}, fmt.Errorf("%w: the server serves no resource %q%s", engine.ErrUsage, name, nearest.DidYouMean(name, names))
}

// resourceOf finds the resource of a kind.
func (c *Clients) resourceOf(ctx context.Context, kind schema.GroupVersionKind) (Resource, error) {
	r, known, err := c.find(ctx, func(r Resource) bool { return r.Kind == kind })
	switch {
	case r != nil:
		return *r, nil
	case err != nil:
		return Resource{}, fmt.Errorf("which resource has kind %s: %w", kind, err)
	}
	var kinds []string
	for _, r := range known {
		kinds = append(kinds, r.Kind.Kind)
	}
	return Resource{}, fmt.Errorf("the server serves no kind %s of %s%s", kind.Kind, kind.GroupVersion(), nearest.DidYouMean(kind.Kind, kinds))
}

// find returns the first resource that is wanted, or nil and all that the server serves. Most commands want
// a resource of Kubernetes itself. For those it asks the server once, as they are the same until other flags
// are given, and that is another start. Definitions and aggregated servers come and go.
func (c *Clients) find(ctx context.Context, wanted func(Resource) bool) (*Resource, []Resource, error) {
	if i := slices.IndexFunc(c.builtin, wanted); i >= 0 {
		return &c.builtin[i], nil, nil
	}
	types, err := builtinTypes()
	if err != nil {
		return nil, nil, err
	}
	known, err := c.Resources(ctx)
	if err == nil {
		c.builtin = slices.DeleteFunc(slices.Clone(known), func(r Resource) bool {
			return !types.IsGroupRegistered(r.Kind.Group)
		})
	}
	if i := slices.IndexFunc(known, wanted); i >= 0 {
		return &known[i], nil, nil
	}
	return nil, known, err
}

// DefaultNamespace is the namespace of objects that name none.
const DefaultNamespace = "default"

// clientOf finds a resource by its name and returns it with its client.
func (c *Clients) clientOf(ctx context.Context, name, namespace string) (Resource, dynamic.ResourceInterface, error) {
	r, err := c.Resource(ctx, name)
	if err != nil {
		return r, nil, err
	}
	client, err := c.clientFor(story.ScriptAgent, r, namespace)
	return r, client, err
}

// ClientOf finds the resource of an object, which is then in the default namespace if it names none,
// and returns it with its client for the script's own requests.
func (c *Clients) ClientOf(ctx context.Context, object *unstructured.Unstructured) (
	Resource, dynamic.ResourceInterface, error) {
	r, err := c.resourceOf(ctx, object.GroupVersionKind())
	if err != nil {
		return r, nil, err
	}
	if r.Namespaced && object.GetNamespace() == "" {
		object.SetNamespace(DefaultNamespace)
	}
	client, err := c.clientFor(story.ScriptAgent, r, object.GetNamespace())
	return r, client, err
}

func (c *Clients) clientFor(agent string, r Resource, namespace string) (dynamic.ResourceInterface, error) {
	client, err := c.Dynamic(agent)
	if err != nil {
		return nil, err
	}
	return In(client, r, namespace), nil
}

// In is the client of a resource, in a namespace if it has one.
func In(client dynamic.Interface, r Resource, namespace string) dynamic.ResourceInterface {
	if !r.Namespaced {
		return client.Resource(r.GVR)
	}
	return client.Resource(r.GVR).Namespace(namespace)
}

// NamespaceFlag declares the flag for a namespace.
func NamespaceFlag(flags *pflag.FlagSet) *string {
	return flags.StringP("namespace", "n", DefaultNamespace, "")
}
