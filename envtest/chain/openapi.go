package chain

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"snowglobe.test/envtest/process"
)

const openAPIv3Path = "/openapi/v3"

// installOpenAPI does for the kube-apiserver what upstream's PrepareRun would, but
// builds its OpenAPI v2 document when a client asks for it, which few do, and shares
// those of v3 with the servers that the process has had before. Each of the two is a
// fifth of the CPU time of a boot.
func (c *Chain) installOpenAPI() error {
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
	if c.cfg.OwnDocuments {
		server.OpenAPIV3VersionedService = routes.OpenAPI{V3Config: config.OpenAPIV3Config}.InstallV3(container, mux)
		return nil
	}
	server.OpenAPIV3VersionedService = sharedOpenAPIv3(server.Handler, config.OpenAPIV3Config)
	return server.OpenAPIV3VersionedService.RegisterOpenAPIV3VersionedService(openAPIv3Path, mux)
}

// sharedOpenAPIv3 returns the service of the OpenAPI v3 documents of a server's routes.
// Nothing changes it: those of CRDs and of aggregated servers have other services.
func sharedOpenAPIv3(server *genericapiserver.APIServerHandler, config *common.OpenAPIV3Config) *handler3.OpenAPIService {
	return process.Memo("OpenAPI v3 "+openAPIKey(server, config), func() *handler3.OpenAPIService {
		return routes.OpenAPI{V3Config: config}.InstallV3(server.GoRestfulContainer, mux.NewPathRecorderMux("OpenAPI v3"))
	})
}

// openAPIKey is a digest of all that the documents depend on: what is served, and the
// feature gates, which decide about the definitions.
func openAPIKey(server *genericapiserver.APIServerHandler, config *common.OpenAPIV3Config) string {
	gates := utilfeature.DefaultMutableFeatureGate
	lines := []string{
		fmt.Sprintf("%+v", config.Info.InfoProps),
		fmt.Sprint(gates, gates.EmulationVersion(), gates.MinCompatibilityVersion()),
	}
	for _, service := range server.GoRestfulContainer.RegisteredWebServices() {
		for _, route := range service.Routes() {
			lines = append(lines, fmt.Sprint(route.Method, route.Path, route.Operation, route.Consumes, route.Produces))
		}
	}
	slices.Sort(lines[2:])
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}
