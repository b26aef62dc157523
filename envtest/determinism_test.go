package envtest_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/clock"
	"snowglobe.test/envtest/trace"
)

var mixedResources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Group: "example.com", Version: "v1", Resource: "widgets"},
}

// mixedClient makes requests of all kinds to a few objects that it shares with
// others, chosen by its own number.
func mixedClient(ctx context.Context, cp *envtest.ControlPlane, number, requests int) {
	client := dynamic.NewForConfigOrDie(cp.AddUser(fmt.Sprintf("client-%d", number), "system:masters"))
	choose := rand.New(rand.NewPCG(uint64(number), 0))
	for i := range requests {
		gvr := mixedResources[choose.IntN(len(mixedResources))]
		objects := client.Resource(gvr).Namespace("default")
		name := fmt.Sprintf("shared-%d", choose.IntN(3))
		kind := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "widgets": "Widget"}[gvr.Resource]
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gvr.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": name, "labels": map[string]any{"by": fmt.Sprint(number)}},
		}}
		switch choose.IntN(8) {
		case 0, 1:
			_, _ = objects.Create(ctx, object, metav1.CreateOptions{})
		case 2:
			if have, err := objects.Get(ctx, name, metav1.GetOptions{}); err == nil {
				have.SetLabels(map[string]string{"updated": fmt.Sprint(i)})
				_, _ = objects.Update(ctx, have, metav1.UpdateOptions{})
			}
		case 3:
			_, _ = objects.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"patched":"%d"}}}`, i), metav1.PatchOptions{})
		case 4:
			_ = objects.Delete(ctx, name, metav1.DeleteOptions{})
		case 5:
			_, _ = objects.Get(ctx, name, metav1.GetOptions{})
		case 6:
			_, _ = objects.List(ctx, metav1.ListOptions{})
		case 7:
			_, _ = objects.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		}
		if choose.IntN(4) == 0 {
			time.Sleep(time.Duration(choose.IntN(50)) * time.Millisecond)
		}
	}
}

// mixedWatch watches objects of a kind until the context ends.
func mixedWatch(ctx context.Context, cp *envtest.ControlPlane, number int) {
	client := dynamic.NewForConfigOrDie(cp.AddUser(fmt.Sprintf("watcher-%d", number), "system:masters"))
	watch, err := client.Resource(mixedResources[number%len(mixedResources)]).Namespace("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for range watch.ResultChan() {
	}
}

// mixedTrace is the canonical trace of five clients and three watchers under a
// seed.
func mixedTrace(t *testing.T, seed uint64) string {
	var text bytes.Buffer
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(10 * time.Second)
		cp.Schedule(clock.Order{Seed: seed})
		var clients, watchers sync.WaitGroup
		for i := range 3 {
			watchers.Go(func() { mixedWatch(ctx, cp, i) })
		}
		for i := range 5 {
			clients.Go(func() { mixedClient(ctx, cp, i, 40) })
		}
		clients.Wait()
		time.Sleep(time.Second)
		cancel()
		watchers.Wait()
		if f := os.Getenv("MIXED_JSON"); f != "" {
			out, _ := os.Create(f)
			_ = trace.WriteJSON(out, cp.Trace().Records())
			out.Close()
		}
		if err := trace.WriteCanonical(&text, cp.Trace().Records()); err != nil {
			t.Error(err)
		}
	}, envtest.WithFullTrace(), envtest.WithCRDs(widgetCRD()))
	return text.String()
}

func TestZZMixed(t *testing.T) {
	dir := os.Getenv("MIXED_DIR")
	for seed := range uint64(2) {
		first := ""
		for run := range 4 {
			text := mixedTrace(t, seed)
			_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%d.txt", seed, run)), []byte(text), 0o600)
			if first == "" {
				first = text
			}
			t.Logf("seed %d run %d: %d bytes; %s", seed, run, len(text), trace.Diff(first, text))
		}
	}
}
