package upstream

import (
	"reflect"
	"testing"

	"github.com/emicklei/go-restful/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestShareRoutePaths has the routes of two servers share what is equal and nothing else.
func TestShareRoutePaths(t *testing.T) {
	server := func() *restful.WebService {
		service := new(restful.WebService).Path("/apis/apps")
		nothing := func(*restful.Request, *restful.Response) {}
		service.Route(service.GET("/{name}").To(nothing))
		service.Route(service.PUT("/{name}").To(nothing))
		service.Route(service.GET("/{name}/status").To(nothing))
		require.NoError(t, ShareRoutePaths([]*restful.WebService{service}))
		return service
	}
	var compiled []uintptr
	for _, service := range []*restful.WebService{server(), server()} {
		for _, route := range service.Routes() {
			expression := reflect.ValueOf(route).FieldByName("pathExpr")
			compiled = append(compiled, expression.Pointer())
			assert.Contains(t, expression.Elem().FieldByName("Source").String(), "^/([^/]+?)")
		}
	}
	name, status := compiled[0], compiled[2]
	assert.NotEqual(t, name, status)
	assert.Equal(t, []uintptr{name, name, status, name, name, status}, compiled)
}
