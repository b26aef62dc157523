package chain

import (
	"slices"
	"strings"

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
	names := map[string]bool{}
	for _, server := range []*genericapiserver.GenericAPIServer{
		c.servers.apiextensions.GenericAPIServer, c.servers.kubeapi.ControlPlane.GenericAPIServer, c.server(),
	} {
		for _, service := range server.Handler.GoRestfulContainer.RegisteredWebServices() {
			for _, route := range service.Routes() {
				if path := parseAPIPath(route.Path); path.resource != "" {
					names[path.resource] = true
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

// apiPath is what the path of a request to the API is about.
type apiPath struct {
	resource  string // with its group; empty if the path is of no resource
	namespace string
	name      string
}

// parseAPIPath reads a path such as /apis/apps/v1/namespaces/default/deployments.
func parseAPIPath(path string) apiPath {
	words := strings.Split(strings.Trim(path, "/"), "/")
	var group string
	switch {
	case words[0] == "api" && len(words) > 2:
		words = words[2:]
	case words[0] == "apis" && len(words) > 3:
		group, words = words[1], words[3:]
	default:
		return apiPath{}
	}
	if words[0] == "watch" && len(words) > 1 {
		words = words[1:]
	}
	var p apiPath
	if words[0] == "namespaces" && len(words) > 2 && words[2] != "status" && words[2] != "finalize" {
		p.namespace, words = words[1], words[2:]
	}
	p.resource = words[0]
	if len(words) > 1 {
		p.name = words[1]
	}
	if group != "" {
		p.resource += "." + group
	}
	return p
}

// withSubresource is the resource as rules name it, such as "pods/status".
func withSubresource(resource, subresource string) string {
	if subresource == "" {
		return resource
	}
	return resource + "/" + subresource
}
