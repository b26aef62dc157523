package consumer

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

var snowflakes = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "snowflakes"}

// snowflake has no arms in its spec if arms is zero.
func snowflake(name string, arms int64) *unstructured.Unstructured {
	spec := map[string]any{}
	if arms != 0 {
		spec["arms"] = arms
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": snowflakes.GroupVersion().String(),
		"kind":       "Snowflake",
		"metadata":   map[string]any{"name": name},
		"spec":       spec,
	}}
}

// TestSnowflakes creates custom resources and watches them. The server is the
// real one, so that defaults, CEL rules and generations are too.
func TestSnowflakes(t *testing.T) {
	cp := envtest.Start(t, envtest.WithCRDPaths("testdata/snowflakes.yaml"))
	client := dynamic.NewForConfigOrDie(cp.Config()).Resource(snowflakes).Namespace("default")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	watcher, err := client.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if _, err := client.Create(ctx, snowflake("first", 0), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-watcher.ResultChan():
		flake, ok := event.Object.(*unstructured.Unstructured)
		if event.Type != watch.Added || !ok || flake.GetName() != "first" || flake.GetGeneration() != 1 {
			t.Fatalf("the watch saw %s %v, want first of generation 1 added", event.Type, event.Object)
		}
		if arms, _, _ := unstructured.NestedInt64(flake.Object, "spec", "arms"); arms != 6 {
			t.Errorf("a snowflake has %d arms by default, want 6", arms)
		}
	case <-ctx.Done():
		t.Fatal("the watch saw nothing")
	}

	if _, err := client.Create(ctx, snowflake("odd", 5), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a snowflake of five arms: error %v, want it invalid", err)
	}
}

// TestEventMelts lets an Event live until its time to live is over: an hour,
// which takes no time.
func TestEventMelts(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		client := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Events("default")
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "snowfall"},
			InvolvedObject: corev1.ObjectReference{Namespace: "default"},
		}
		if _, err := client.Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Minute)
		if _, err := client.Get(t.Context(), event.Name, metav1.GetOptions{}); err != nil {
			t.Fatalf("the event within its hour: %v", err)
		}
		time.Sleep(3 * time.Minute) // the API server rounds up, to share leases
		if _, err := client.Get(t.Context(), event.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the event after its hour: error %v, want it not found", err)
		}
	})
}
