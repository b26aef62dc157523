package upstream

// Works around RouteBuilder.Build (github.com/emicklei/go-restful), which compiles the path of each route
// by itself. TestShareRoutePaths notices when routes keep it otherwise.

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/emicklei/go-restful/v3"
)

// routePaths are the compiled paths of routes in the process, by the paths.
var routePaths sync.Map

// ShareRoutePaths lets the routes of services have their compiled paths in common with those of other
// servers. A server has 1,200 routes, each with a regular expression that no other has, though most differ
// in the verb or the group only: five MB of live heap.
func ShareRoutePaths(services []*restful.WebService) error {
	route := reflect.TypeFor[restful.Route]()
	path, havePath := route.FieldByName("relativePath")
	compiled, haveCompiled := route.FieldByName("pathExpr")
	if !havePath || !haveCompiled || path.Type.Kind() != reflect.String || compiled.Type.Kind() != reflect.Pointer {
		return errChanged("routes have no relativePath that is compiled to their pathExpr any more")
	}
	for _, service := range services {
		routes := service.Routes() // the service's own
		for i := range routes {
			path := *(*string)(unsafe.Add(unsafe.Pointer(&routes[i]), path.Offset))
			own := (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(&routes[i]), compiled.Offset))
			shared, _ := routePaths.LoadOrStore(path, *own)
			*own = shared.(unsafe.Pointer)
		}
	}
	return nil
}
