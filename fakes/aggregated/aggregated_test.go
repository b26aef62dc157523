package aggregated_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/aggregated"
)

func TestMain(m *testing.M) {
	// Client-go complains of what is broken off here. One of its handlers of errors
	// also waits, until a time that is not that of all bubbles.
	klog.SetLogger(logr.Discard())
	runtime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

// resources are those of the tests: widgets in two versions, and gadgets without a
// namespace.
var resources = []aggregated.Resource{
	{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true, Status: true, ShortNames: []string{"wd"}, Categories: []string{"all"},
		Columns: []aggregated.Column{{
			TableColumnDefinition: metav1.TableColumnDefinition{Name: "Size", Type: "integer"},
			Cell: func(o *unstructured.Unstructured) any {
				size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
				return size
			},
		}}},
	{Group: "example.com", Version: "v1beta1", Plural: "widgets", Kind: "Widget", Namespaced: true, Status: true},
	{Group: "other.example.com", Version: "v1", Plural: "gadgets", Singular: "gadgetto", Kind: "Gadget"},
}

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gadgets = schema.GroupVersionResource{Group: "other.example.com", Version: "v1", Resource: "gadgets"}
)

// world is a server and a client.
type world struct {
	*aggregated.Server
	t      *testing.T
	config *rest.Config
	client *http.Client
	bubble bool
	others sync.WaitGroup // goroutines of the test
}

// inWorlds runs a test on a socket in real time, and in memory in virtual time. Nothing
// may be left of either.
func inWorlds(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("socket", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		w := newWorld(t, l, aggregated.Config{Resources: resources})
		test(t, w)
		w.end()
	})
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, memnet.Listen(), aggregated.Config{Resources: resources})
			test(t, w)
			w.end()
		})
	})
}

func newWorld(t *testing.T, l net.Listener, config aggregated.Config) *world {
	t.Helper()
	s, err := aggregated.Serve(l, config)
	require.NoError(t, err)
	w := &world{Server: s, t: t}
	w.config = &rest.Config{Host: s.URL(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA()}}
	if l, ok := l.(*memnet.Listener); ok {
		w.config.Dial, w.bubble = l.DialNetwork, true
	}
	w.client, err = rest.HTTPClientFor(w.config)
	require.NoError(t, err)
	return w
}

// end stops the server.
func (w *world) end() {
	w.t.Helper()
	assert.NoError(w.t, w.Stop(context.Background()))
	w.others.Wait()
	w.client.CloseIdleConnections()
}

func (w *world) dynamic() dynamic.Interface {
	client, err := dynamic.NewForConfigAndClient(w.config, w.client)
	require.NoError(w.t, err)
	return client
}

// do sends a request with headers, pairs of names and values.
func (w *world) do(ctx context.Context, method, path, body string, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, w.URL()+path, bytes.NewReader([]byte(body)))
	require.NoError(w.t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	return w.client.Do(request)
}

// answer is the code and the body of what a request is answered.
func (w *world) answer(method, path, body string, headers ...string) (int, string) {
	w.t.Helper()
	response, err := w.do(w.t.Context(), method, path, body, headers...)
	require.NoError(w.t, err)
	data, err := io.ReadAll(response.Body)
	assert.NoError(w.t, err)
	assert.NoError(w.t, response.Body.Close())
	return response.StatusCode, string(data)
}

// widget is an object with a label for its size.
func widget(namespace, name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"size": fmt.Sprint(size)}},
		"spec":     map[string]any{"size": size},
	}}
}

// put puts objects into the server.
func (w *world) put(objects ...*unstructured.Unstructured) {
	w.t.Helper()
	for _, o := range objects {
		_, err := w.Put(o)
		require.NoError(w.t, err)
	}
}

// names are those of a list, with their namespaces.
func names(list *unstructured.UnstructuredList) []string {
	found := []string{}
	for _, o := range list.Items {
		found = append(found, o.GetNamespace()+"/"+o.GetName())
	}
	return found
}

// TestStopLeavesNothing stops a server with a watch, a held request and connections that
// have nothing to do. No time passes in the bubble once its test is over.
func TestStopLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memnet.Listen(), aggregated.Config{Resources: resources})
		w.Requests.Hold(func(r aggregated.Request) bool { return r.ObjectName == "held" })
		response, err := w.do(t.Context(), "GET", "/apis/example.com/v1/widgets?watch=1", "")
		require.NoError(t, err)
		w.others.Go(func() {
			_, err := w.do(t.Context(), "GET", "/apis/example.com/v1/namespaces/default/widgets/held", "")
			if err == nil {
				t.Log("answered before the connection was closed")
			}
		})
		synctest.Wait()
		began := time.Now()
		require.NoError(t, w.Stop(context.Background()))
		assert.Less(t, time.Since(began), time.Second)
		_, _ = io.ReadAll(response.Body)
		assert.NoError(t, response.Body.Close())
		w.others.Wait()
		w.client.CloseIdleConnections()
	})
}
