package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"snowglobe.test/internal/nearest"
)

// apiResource is a resource that the server serves.
type apiResource struct {
	gvr        schema.GroupVersionResource
	kind       schema.GroupVersionKind
	namespaced bool
	names      []string // all names that a script may use for it
}

// resources asks the server which resources it serves, preferred versions first.
// If some groups fail, it returns the others along with the error.
func (s *session) resources(ctx context.Context) ([]apiResource, error) {
	config, err := s.config(lookupAgent)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResourcesWithContext(ctx)
	var found []apiResource
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
			found = append(found, apiResource{gvr: gv.WithResource(r.Name), kind: gv.WithKind(r.Kind), namespaced: r.Namespaced, names: names})
		}
	}
	return found, err
}

// resource finds a resource by any name: "configmaps", "cm", "widgets.example.com".
func (s *session) resource(ctx context.Context, name string) (apiResource, error) {
	known, lookupErr := s.resources(ctx)
	var names []string
	for _, r := range known {
		if slices.Contains(r.names, strings.ToLower(name)) {
			return r, nil
		}
		names = append(names, r.gvr.Resource)
	}
	if lookupErr != nil {
		return apiResource{}, fmt.Errorf("which resource is %q: %w", name, lookupErr)
	}
	return apiResource{}, fmt.Errorf("%w: the server serves no resource %q%s", errUsage, name, nearest.DidYouMean(name, names))
}

func (s *session) resourceOf(ctx context.Context, kind schema.GroupVersionKind) (apiResource, error) {
	known, lookupErr := s.resources(ctx)
	var kinds []string
	for _, r := range known {
		if r.kind == kind {
			return r, nil
		}
		kinds = append(kinds, r.kind.Kind)
	}
	if lookupErr != nil {
		return apiResource{}, fmt.Errorf("which resource has kind %s: %w", kind, lookupErr)
	}
	return apiResource{}, fmt.Errorf("the server serves no kind %s of %s%s", kind.Kind, kind.GroupVersion(), nearest.DidYouMean(kind.Kind, kinds))
}

// defaultNamespace is the namespace of objects that name none.
const defaultNamespace = "default"

// clientOf finds a resource by its name and returns it with its client.
func (s *session) clientOf(ctx context.Context, name, namespace string) (apiResource, dynamic.ResourceInterface, error) {
	r, err := s.resource(ctx, name)
	if err != nil {
		return r, nil, err
	}
	client, err := s.client(r, namespace)
	return r, client, err
}

// client returns a client of one resource for the script's own requests.
func (s *session) client(r apiResource, namespace string) (dynamic.ResourceInterface, error) {
	return s.clientFor(scriptAgent, r, namespace)
}

func (s *session) clientFor(agent string, r apiResource, namespace string) (dynamic.ResourceInterface, error) {
	config, err := s.config(agent)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return clientIn(client, r, namespace), nil
}

// clientIn is the client of a resource, in a namespace if it has one.
func clientIn(client dynamic.Interface, r apiResource, namespace string) dynamic.ResourceInterface {
	if !r.namespaced {
		return client.Resource(r.gvr)
	}
	return client.Resource(r.gvr).Namespace(namespace)
}

func namespaceFlag(flags *pflag.FlagSet) *string {
	return flags.StringP("namespace", "n", defaultNamespace, "")
}
