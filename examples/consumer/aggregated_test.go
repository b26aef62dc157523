package consumer

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/trace"
)

var forecasts = schema.GroupVersionResource{Group: "weather.example.com", Version: "v1", Resource: "forecasts"}

// weather is an aggregated API server, as small as one can be: discovery, and a resource
// that is computed for each request.
func weather(w http.ResponseWriter, req *http.Request) {
	group := "/apis/" + forecasts.GroupVersion().String()
	var answer any
	switch {
	case req.URL.Path == group:
		answer = metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: forecasts.GroupVersion().String(),
			APIResources: []metav1.APIResource{{Name: "forecasts", Kind: "Forecast", Verbs: metav1.Verbs{"get"}}},
		}
	case strings.HasPrefix(req.URL.Path, group+"/forecasts/"):
		answer = map[string]any{
			"apiVersion": forecasts.GroupVersion().String(), "kind": "Forecast",
			"metadata": map[string]any{"name": strings.TrimPrefix(req.URL.Path, group+"/forecasts/")},
			"spec":     map[string]any{"asks": req.Header.Get("X-Remote-User"), "sky": "snow"},
		}
	default:
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// TestAggregated asks an aggregated API server through the real aggregation layer. It
// knows who asks, and a client is told 503, and never 404, while it can't be reached.
func TestAggregated(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		server, err := cp.Webhooks().Serve(http.HandlerFunc(weather), "weather.default.svc")
		if err != nil {
			t.Fatal(err)
		}
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "weather"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "weather.default.svc", Ports: []corev1.ServicePort{{Port: 443}}},
		}
		if _, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		client := dynamic.NewForConfigOrDie(cp.Config())
		apiService := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": "v1.weather.example.com"},
			"spec": map[string]any{
				"group": forecasts.Group, "version": forecasts.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
				"service": map[string]any{"namespace": "default", "name": "weather"}, "caBundle": base64.StdEncoding.EncodeToString(server.CA()),
			},
		}}
		if _, err := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).Create(t.Context(), apiService, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}

		get := func() (*unstructured.Unstructured, error) {
			return client.Resource(forecasts).Get(t.Context(), "today", metav1.GetOptions{})
		}
		forecast, err := get()
		for begin := time.Now(); err != nil && time.Since(begin) < time.Minute; forecast, err = get() {
			time.Sleep(100 * time.Millisecond) // until the aggregator has asked whether it is there
		}
		if err != nil {
			t.Fatal(err)
		}
		if asks, _, _ := unstructured.NestedString(forecast.Object, "spec", "asks"); asks != trace.AdminUser {
			t.Errorf("the server was asked for %q, want %q", asks, trace.AdminUser)
		}

		if err := server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := get(); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("while it is gone: error %v, want 503", err)
		}
	})
}
