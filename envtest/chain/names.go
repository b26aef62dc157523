package chain

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/emicklei/go-restful/v3"
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
		"hook":              slices.Concat(c.hooks.names, c.hooks.stopping),
		"post-start hook":   c.hooks.names,
		"pre-shutdown hook": c.hooks.stopping,
		"signal":            c.signalNames(),
		"resource":          c.resourceNames(false),
		"subresource":       c.resourceNames(true),
	})
}

// resourceNames returns the resources of all servers, like "deployments.apps", or
// their subresources, like "deployments.apps/scale".
func (c *Chain) resourceNames(sub bool) []string {
	infos := genericapiserver.NewRequestInfoResolver(c.generic.config)
	names := map[string]bool{}
	for _, service := range c.services() {
		for _, route := range service.Routes() {
			if name := resourceAt(infos, route.Path); name != "" && strings.Contains(name, "/") == sub {
				names[name] = true
			}
		}
	}
	return slices.Collect(maps.Keys(names))
}

// services are the built-in APIs of all servers.
func (c *Chain) services() (services []*restful.WebService) {
	for _, server := range []*genericapiserver.GenericAPIServer{
		c.servers.apiextensions.GenericAPIServer, c.servers.kubeapi.ControlPlane.GenericAPIServer, c.server(),
	} {
		services = append(services, server.Handler.GoRestfulContainer.RegisteredWebServices()...)
	}
	return services
}

// resourceAt returns the resource, with its group and subresource, of an API path;
// empty if none.
func resourceAt(infos request.RequestInfoResolver, path string) string {
	info, err := infos.NewRequestInfo(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
	if err != nil || !info.IsResourceRequest {
		return ""
	}
	name := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String()
	if info.Subresource != "" {
		name += "/" + info.Subresource
	}
	return name
}
