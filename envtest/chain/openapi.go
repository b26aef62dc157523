package chain

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/emicklei/go-restful/v3"
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

// installOpenAPI does for the kube-apiserver what upstream's PrepareRun would, but
// builds its OpenAPI documents when a client asks for them, which few do, and shares
// those of v3 with the servers that the process has had before. Each of the two would be
// a sixth or more of the CPU time of a boot.
func (c *Chain) installOpenAPI() {
	server := c.servers.kubeapi.ControlPlane.GenericAPIServer
	container, paths := server.Handler.GoRestfulContainer, server.Handler.NonGoRestfulMux
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
	server.OpenAPIVersionedService.RegisterOpenAPIVersionedService("/openapi/v2", paths)
	build := func() *handler3.OpenAPIService {
		documents := routes.OpenAPI{V3Config: config.OpenAPIV3Config}
		return documents.InstallV3(container, mux.NewPathRecorderMux("OpenAPI v3"))
	}
	c.documents.Install(paths, container.RegisteredWebServices(), func() *handler3.OpenAPIService {
		if c.cfg.OwnDocuments {
			return build()
		}
		// Nothing changes the service: the documents of CRDs and of aggregated servers have others.
		return process.Memo("OpenAPI v3 "+openAPIKey(container, config.OpenAPIV3Config), build)
	})
}

// sharedDefinitions shares the schemas of all types with the servers that the process has had before.
// Each builder of documents asks for them anew, and adds to the extensions of those that it uses.
func sharedDefinitions(get common.GetOpenAPIDefinitions) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		// The schemas refer to one another as in v2 or as in v3, by the same names in every server.
		example := ref("k8s.io/api/core/v1.Pod")
		key := fmt.Sprintln("OpenAPI definitions", example.String(), gatesKey())
		made := process.Memo(key, func() map[string]common.OpenAPIDefinition { return get(ref) })
		definitions := make(map[string]common.OpenAPIDefinition, len(made))
		for name, definition := range made {
			definition.Schema.Extensions = maps.Clone(definition.Schema.Extensions)
			definitions[name] = definition
		}
		return definitions
	}
}

// gatesKey says what decides about the definitions.
func gatesKey() string {
	gates := utilfeature.DefaultMutableFeatureGate
	return fmt.Sprint(gates, gates.EmulationVersion(), gates.MinCompatibilityVersion())
}

// openAPIKey is a digest of all that the documents depend on: what is served, and the
// feature gates, which decide about the definitions.
func openAPIKey(container *restful.Container, config *common.OpenAPIV3Config) string {
	lines := []string{fmt.Sprintf("%+v", config.Info.InfoProps), gatesKey()}
	for _, service := range container.RegisteredWebServices() {
		for _, route := range service.Routes() {
			lines = append(lines, fmt.Sprint(route.Method, route.Path, route.Operation, route.Consumes, route.Produces))
		}
	}
	slices.Sort(lines[2:])
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}
