package clients

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"snowglobe.test/scenarios/commands/servers"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// empty is an API server without objects: a list that is streamed ends at once.
type empty struct{}

const listEnd = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`

// RoundTrip implements http.RoundTripper.
func (empty) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(io.MultiReader(strings.NewReader(listEnd), pending{req.Context()})),
	}, nil
}

// pending is a watch in which nothing happens.
type pending struct{ ctx context.Context }

// Read implements io.Reader.
func (p pending) Read([]byte) (int, error) {
	<-p.ctx.Done()
	return 0, p.ctx.Err()
}

// TestInformerHearsOtherAnswers has a mutation change the answers that an informer gets.
func TestInformerHearsOtherAnswers(t *testing.T) {
	for name, mutation := range map[string]script.Mutation{
		"all answers":   {Name: "all answers", Answer: &script.OtherAnswer{From: http.StatusOK, To: http.StatusServiceUnavailable}},
		"other answers": {Name: "other answers", Answer: &script.OtherAnswer{From: http.StatusTeapot, To: http.StatusOK}},
	} {
		synctest.Test(t, func(t *testing.T) {
			mutated, err := script.Parse("x.txtar", []byte("start\n")).Mutate(mutation)
			require.NoError(t, err)
			run := engine.New(t.Context(), mutated, engine.Options{})
			c := New(run, servers.New(run, servers.Config{}))
			c.identity = &rest.Config{Host: "http://empty", Transport: empty{}}
			resource := Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}
			require.NoError(t, c.inform("all", resource, metav1.NamespaceAll, ""))
			defer c.Close()
			time.Sleep(time.Minute)
			assert.NotEqual(t, name == "all answers", c.streams["all"].informer.HasSynced(), "under the mutation of %s, the informer has synced", name)
		})
	}
}
