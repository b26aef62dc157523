package aggregated_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"snowglobe.test/fakes/aggregated"
)

func (w *world) discovery() *discovery.DiscoveryClient {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(w.config, w.client)
	require.NoError(w.t, err)
	return client
}

func TestDiscovery(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		legacy := w.discovery()
		legacy.UseLegacyDiscovery = true
		for name, client := range map[string]*discovery.DiscoveryClient{"aggregated": w.discovery(), "legacy": legacy} {
			groups, lists, err := client.ServerGroupsAndResources()
			require.NoError(t, err, name)
			assert.Equal(t, "example.com/v1", groups[0].PreferredVersion.GroupVersion, name)
			assert.Equal(t, "v1beta1", groups[0].Versions[1].Version, name)
			assert.Equal(t, "other.example.com", groups[1].Name, name)
			resources := map[string][]metav1.APIResource{}
			for _, list := range lists { // in no order: client-go keeps a map
				resources[list.GroupVersion] = list.APIResources
			}
			found := resources["example.com/v1"]
			require.Len(t, found, 2, name)
			assert.Equal(t, []string{"widgets", "widget", "Widget"}, []string{found[0].Name, found[0].SingularName, found[0].Kind}, name)
			assert.Equal(t, []any{true, []string{"wd"}, []string{"all"}}, []any{found[0].Namespaced, found[0].ShortNames, found[0].Categories}, name)
			assert.Contains(t, found[0].Verbs, "watch", name)
			assert.Equal(t, "widgets/status", found[1].Name, name)
			assert.Len(t, resources["example.com/v1beta1"], 2)
			gadgets := resources["other.example.com/v1"]
			require.Len(t, gadgets, 1, name)
			assert.Equal(t, "gadgetto", gadgets[0].SingularName, name)
			assert.False(t, gadgets[0].Namespaced, name)
		}
	})
}

func TestETag(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		for path, accept := range map[string]string{
			"/apis": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "/apis/example.com/v1": "application/json",
			"/openapi/v2": "application/json", "/openapi/v3": "application/json",
		} {
			response, err := w.do(t.Context(), "GET", path, "", "Accept", accept)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, response.StatusCode)
			assert.NoError(t, response.Body.Close())
			etag := response.Header.Get("Etag")
			require.NotEmpty(t, etag, path)
			code, body := w.answer("GET", path, "", "Accept", accept, "If-None-Match", etag)
			assert.Equal(t, "304 ", joined(code, body), path)
			code, _ = w.answer("GET", path, "", "Accept", accept, "If-None-Match", `"other"`)
			assert.Equal(t, http.StatusOK, code, path)
		}
		response, err := w.do(t.Context(), "GET", "/apis", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		require.NoError(t, err)
		assert.Equal(t, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", response.Header.Get("Content-Type"))
		assert.NoError(t, response.Body.Close())
	})
}

func TestOpenAPI(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		document, err := w.discovery().OpenAPISchema()
		require.NoError(t, err)
		var found []string
		for _, d := range document.GetDefinitions().GetAdditionalProperties() {
			found = append(found, d.GetName())
		}
		assert.ElementsMatch(t, []string{
			"com.example.v1.Widget", "com.example.v1.WidgetList", "com.example.v1beta1.Widget", "com.example.v1beta1.WidgetList",
			"com.example.other.v1.Gadget", "com.example.other.v1.GadgetList",
		}, found)

		paths, err := w.discovery().OpenAPIV3().Paths()
		require.NoError(t, err)
		assert.Len(t, paths, 3)
		schemas, err := paths["apis/example.com/v1"].Schema("application/json")
		require.NoError(t, err)
		for _, want := range []string{`"com.example.v1.Widget"`, `"/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"`, `"x-kubernetes-preserve-unknown-fields":true`, `"status"`} {
			assert.Contains(t, string(schemas), want)
		}
		assert.Contains(t, paths, "apis/other.example.com/v1")
	})
}

// TestDiscoveryHeld lets a client of discovery wait until it leaves.
func TestDiscoveryHeld(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		gate := w.Requests.Hold(aggregated.Request.Discovers)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		w.others.Go(func() {
			_, err := w.do(ctx, "GET", "/apis/example.com/v1", "")
			failed <- err
		})
		require.NoError(t, gate.Await(t.Context(), 1))
		code, _ := w.answer("GET", "/apis/example.com/v1/widgets", "")
		assert.Equal(t, http.StatusOK, code, "objects are served")
		cancel()
		assert.ErrorIs(t, <-failed, context.Canceled)
		calls, err := w.Requests.Await(t.Context(), 2)
		require.NoError(t, err)
		assert.ErrorContains(t, calls[0].Err, "held at a gate")
		gate.Open()
		response, err := w.do(t.Context(), "GET", "/openapi/v3", "")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		assert.NoError(t, err)
		assert.NoError(t, response.Body.Close())
	})
}
