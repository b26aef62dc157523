package upstream

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/emicklei/go-restful/v3"
	"github.com/stretchr/testify/assert"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
)

// TestLazyOpenAPI makes the documents when the first client asks for them, and not for the server's own.
func TestLazyOpenAPI(t *testing.T) {
	var documents LazyOpenAPI
	made, fetched := 0, 0
	paths := mux.NewPathRecorderMux("test")
	services := []*restful.WebService{new(restful.WebService).Path("/api/v1")}
	documents.Install(paths, services, func() *handler3.OpenAPIService {
		made++
		service := handler3.NewOpenAPIService()
		service.UpdateGroupVersion("api/v1", &spec3.OpenAPI{Version: "3.0.0"})
		return service
	})
	handler := documents.BeforeAggregator(paths, func() error {
		fetched++
		return nil
	})
	ask := func(who, path string) string {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: who}))
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		assert.Equal(t, http.StatusOK, answer.Code, "%s asks for %s", who, path)
		return answer.Body.String()
	}
	const someone, index, document = "someone", "/openapi/v3", "/openapi/v3/api/v1"
	assert.JSONEq(t, `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1"}}}`, ask(user.APIServerUser, index))
	assert.Zero(t, made+fetched, "for the server itself")
	for range 2 {
		assert.Regexp(t, `"serverRelativeURL":"/openapi/v3/api/v1\?hash=[0-9A-F]{128}"`, ask(someone, index))
		assert.JSONEq(t, `{"openapi":"3.0.0","info":null}`, ask(someone, document))
		assert.Contains(t, ask(user.APIServerUser, index), "?hash=")
	}
	assert.Equal(t, []int{1, 1}, []int{made, fetched})

	documents = LazyOpenAPI{}
	ask(user.APIServerUser, document)
	assert.Equal(t, 2, fetched, "a document is for whoever asks")
}
