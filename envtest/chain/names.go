package chain

import (
	"net/http"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/fault"
)

// unknownNamesError says that rules, or HookFaults, name what is not there.
type unknownNamesError struct{ error }

// Unwrap returns what is wrong.
func (e *unknownNamesError) Unwrap() error { return e.error }

// knowNames tells the rules which names there are, and refuses those that name
// others.
func (c *Chain) knowNames() error {
	if c.cfg.Faults == nil {
		return nil
	}
	err := c.cfg.Faults.AddNames(fault.Names{
		"hook":     slices.Concat(c.hooks.names, c.hooks.stopping),
		"signal":   c.signalNames(),
		"resource": c.resourceNames(),
	})
	if err != nil {
		return &unknownNamesError{err}
	}
	return nil
}

// resourceNames returns the resources that the servers of the chain bring along,
// such as "configmaps" and "deployments.apps".
func (c *Chain) resourceNames() []string {
	resolver := genericapiserver.NewRequestInfoResolver(c.generic.config)
	names := map[string]bool{}
	for _, server := range []*genericapiserver.GenericAPIServer{
		c.servers.apiextensions.GenericAPIServer, c.servers.kubeapi.ControlPlane.GenericAPIServer, c.server(),
	} {
		for _, service := range server.Handler.GoRestfulContainer.RegisteredWebServices() {
			for _, route := range service.Routes() {
				if resource := resourceIn(route.Path, resolver); resource != "" {
					names[resource] = true
				}
			}
		}
	}
	all := make([]string, 0, len(names))
	for name := range names {
		all = append(all, name)
	}
	return all
}

// resourceIn returns the resource that a path is about, such as "deployments.apps",
// empty if it is about none.
func resourceIn(path string, resolver request.RequestInfoResolver) string {
	info, err := resolver.NewRequestInfo(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
	if err != nil || !info.IsResourceRequest {
		return ""
	}
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String()
}
