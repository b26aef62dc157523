package chain

import (
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// installOpenAPI does for the kube-apiserver what upstream's PrepareRun would, but
// builds its OpenAPI v2 document when a client asks for it. That is a sixth of the CPU
// time of a boot, and few clients do: those of today ask for v3.
func (c *Chain) installOpenAPI() {
	server := c.servers.kubeapi.ControlPlane.GenericAPIServer
	container, mux := server.Handler.GoRestfulContainer, server.Handler.NonGoRestfulMux
	config := c.configs.kubeapi.ControlPlane.Generic
	document := cached.Once(cached.Func(func() (*spec.Swagger, string, error) {
		built, err := builder.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(container.RegisteredWebServices()), config.OpenAPIConfig)
		if err != nil {
			return nil, "", err
		}
		built.Definitions = handler.PruneDefaults(built.Definitions)
		return built, "never-changes", nil
	}))
	server.OpenAPIVersionedService = handler.NewOpenAPIServiceLazy(document)
	server.OpenAPIVersionedService.RegisterOpenAPIVersionedService("/openapi/v2", mux)
	server.OpenAPIV3VersionedService = routes.OpenAPI{V3Config: config.OpenAPIV3Config}.InstallV3(container, mux)
}
