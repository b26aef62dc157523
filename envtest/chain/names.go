package chain

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/fault"
)

// knowNames tells the rules which names there are, and refuses rules with others.
func (c *Chain) knowNames() error {
	if c.cfg.Faults == nil {
		return nil
	}
	return c.cfg.Faults.AddNames(fault.Names{
		"hook":     slices.Concat(c.hooks.names, c.hooks.stopping),
		"signal":   c.signalNames(),
		"resource": c.resourceNames(),
	})
}

// resourceNames returns the resources of all servers, like "deployments.apps".
func (c *Chain) resourceNames() []string {
	infos := genericapiserver.NewRequestInfoResolver(c.generic.config)
	names := map[string]bool{}
	for _, server := range []*genericapiserver.GenericAPIServer{
		c.servers.apiextensions.GenericAPIServer, c.servers.kubeapi.ControlPlane.GenericAPIServer, c.server(),
	} {
		for _, service := range server.Handler.GoRestfulContainer.RegisteredWebServices() {
			for _, route := range service.Routes() {
				if name := resourceAt(infos, route.Path); name != "" {
					names[name] = true
				}
			}
		}
	}
	return slices.Collect(maps.Keys(names))
}

// resourceAt returns the resource, with its group, of an API path; empty if none.
func resourceAt(infos request.RequestInfoResolver, path string) string {
	info, err := infos.NewRequestInfo(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
	if err != nil || !info.IsResourceRequest {
		return ""
	}
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String()
}
