package aggregated

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// newOpenAPI serves the schemas of all resources, with upstream's handlers.
func newOpenAPI(resources []Resource) (http.Handler, error) {
	mux := &pathMux{http.NewServeMux()}
	all := newSwagger()
	var versions []string
	each := map[string]*spec.Swagger{} // by group and version
	for _, r := range resources {
		place := "apis/" + r.groupVersion().String()
		if each[place] == nil {
			versions = append(versions, place)
			each[place] = newSwagger()
		}
		r.describe(all)
		r.describe(each[place])
	}
	handler.NewOpenAPIService(all).RegisterOpenAPIVersionedService("/openapi/v2", mux)
	v3 := handler3.NewOpenAPIService()
	for _, place := range versions {
		v3.UpdateGroupVersion(place, openapiconv.ConvertV2ToV3(each[place]))
	}
	return mux, v3.RegisterOpenAPIV3VersionedService("/openapi/v3", mux)
}

// pathMux is a mux as upstream's handlers want it.
type pathMux struct{ *http.ServeMux }

// HandlePrefix implements common.PathHandlerByGroupVersion.
func (m *pathMux) HandlePrefix(path string, handler http.Handler) { m.Handle(path, handler) }

func newSwagger() *spec.Swagger {
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0", Info: &spec.Info{InfoProps: spec.InfoProps{Title: "Aggregated", Version: "unversioned"}},
		Paths: &spec.Paths{Paths: map[string]spec.PathItem{}}, Definitions: spec.Definitions{},
	}}
}

// describe adds the schemas and the paths of a resource.
func (r *Resource) describe(swagger *spec.Swagger) {
	labels := strings.Split(r.Group, ".")
	slices.Reverse(labels)
	name := strings.Join(labels, ".") + "." + r.Version + "." + r.Kind
	r.describeKinds(swagger.Definitions, name)
	r.describePaths(swagger.Paths.Paths, name)
}

// describeKinds adds the schemas of the kind and its list.
func (r *Resource) describeKinds(definitions spec.Definitions, name string) {
	object := openObject("A " + r.Kind + " may have any fields.")
	object.Properties = map[string]spec.Schema{
		"apiVersion": text("The version of the object's form."), "kind": text("The kind of the object."),
		"metadata": openObject("Standard object's metadata."),
	}
	if r.Status {
		object.Properties["status"] = openObject("The status of the object, which is a subresource.")
	}
	object.AddExtension(kindExtension, []any{r.kind("")})
	definitions[name] = object

	list := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Required: []string{"items"}}}
	list.Properties = map[string]spec.Schema{
		"apiVersion": text("The version of the list's form."), "kind": text("The kind of the list."),
		"metadata": openObject("Standard list metadata."),
		"items":    {SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"array"}, Items: &spec.SchemaOrArray{Schema: spec.RefSchema("#/definitions/" + name)}}},
	}
	list.AddExtension(kindExtension, []any{r.kind("List")})
	definitions[name+"List"] = list
}

const kindExtension = "x-kubernetes-group-version-kind"

func (r *Resource) kind(suffix string) map[string]any {
	return map[string]any{"group": r.Group, "version": r.Version, "kind": r.Kind + suffix}
}

func openObject(description string) spec.Schema {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Description: description}}
	s.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return s
}

func text(description string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}, Description: description}}
}

// describePaths adds the paths of the collection and of its objects.
func (r *Resource) describePaths(paths map[string]spec.PathItem, name string) {
	operation := func(action, answer string) *spec.Operation {
		o := &spec.Operation{OperationProps: spec.OperationProps{
			ID: action + r.Group + r.Version + r.Kind, Consumes: []string{"application/json"}, Produces: []string{"application/json"},
			Responses: &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: map[int]spec.Response{
				http.StatusOK: {ResponseProps: spec.ResponseProps{Description: "OK", Schema: spec.RefSchema("#/definitions/" + answer)}},
			}}},
		}}
		o.AddExtension("x-kubernetes-action", action)
		o.AddExtension(kindExtension, r.kind(""))
		return o
	}
	inPath := func(name string) spec.Parameter {
		return spec.Parameter{
			ParamProps:   spec.ParamProps{Name: name, In: "path", Required: true},
			SimpleSchema: spec.SimpleSchema{Type: "string"}, CommonValidations: spec.CommonValidations{UniqueItems: true},
		}
	}
	path, parameters := "/apis/"+r.groupVersion().String()+"/", []spec.Parameter(nil)
	if r.Namespaced {
		path, parameters = path+"namespaces/{namespace}/", append(parameters, inPath("namespace"))
	}
	path += r.Plural
	paths[path] = spec.PathItem{PathItemProps: spec.PathItemProps{
		Get: operation("list", name+"List"), Post: operation("post", name), Parameters: parameters,
	}}
	paths[path+"/{name}"] = spec.PathItem{PathItemProps: spec.PathItemProps{
		Get: operation("get", name), Put: operation("put", name), Patch: operation("patch", name), Delete: operation("delete", name),
		Parameters: append(slices.Clone(parameters), inPath("name")),
	}}
}
