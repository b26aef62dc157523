package soak_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/trace"
)

var (
	seedRuns = flag.Int("seed-runs", 2, "how often TestSameSeedSameTrace runs its seed, each time in a process of its own")
	seeds    = flag.Int("seeds", 3, "how many seeds TestSeedsDiffer runs")
)

// mixedEnv names the file into which a process of these tests writes the trace
// of mixedRun, instead of running tests, and mixedSeed the seed.
const (
	mixedEnv  = "SNOWGLOBE_TEST_MIXED_TRACE"
	mixedSeed = "SNOWGLOBE_TEST_MIXED_SEED"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // memory for time, as in envtest
	file := os.Getenv(mixedEnv)
	if file == "" {
		os.Exit(m.Run())
	}
	seed, err := strconv.ParseUint(os.Getenv(mixedSeed), 10, 64)
	if err == nil {
		err = writeMixed(file, seed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestSameSeedSameTrace runs one seed in processes with one and with two
// processors, and compares what could be observed, byte by byte.
func TestSameSeedSameTrace(t *testing.T) {
	first := mixedTrace(t, 1, 1)
	for run := 1; run < *seedRuns; run++ {
		if again := mixedTrace(t, 1, 1+run%2); again != first {
			t.Fatalf("run %d: %s", run, trace.Diff(first, again))
		}
	}
}

// TestSeedsDiffer shows that seeds are different runs: nine in ten have a trace
// that no other has.
func TestSeedsDiffer(t *testing.T) {
	traces := map[string]bool{}
	for seed := range *seeds {
		traces[mixedTrace(t, uint64(seed), 1+seed%2)] = true
	}
	if len(traces) < *seeds*9/10 {
		t.Errorf("%d seeds gave %d traces", *seeds, len(traces))
	}
}

// mixedTrace is the canonical trace of a run of its own process.
func mixedTrace(t *testing.T, seed uint64, processors int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), mixedEnv+"="+file, fmt.Sprintf("%s=%d", mixedSeed, seed), fmt.Sprintf("GOMAXPROCS=%d", processors))
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeMixed(file string, seed uint64) error {
	var err error
	out, openErr := os.Create(file)
	if openErr != nil {
		return openErr
	}
	err = envtest.SimulateContext(func(ctx context.Context, cp *envtest.ControlPlane) error {
		if err := mixedRun(ctx, cp); err != nil {
			return err
		}
		return trace.WriteCanonical(out, cp.Trace().Records())
	}, envtest.WithReplicas(2), envtest.WithSeed(seed), envtest.WithFullTrace(), envtest.WithCRDPaths("testdata/widgets.yaml"))
	return errors.Join(err, out.Close())
}

// mixedRun is five clients, with 40 requests of all kinds each, and three watches
// of what they do, while one server after the other crashes and comes back.
func mixedRun(ctx context.Context, cp *envtest.ControlPlane) error {
	watching, end := context.WithCancel(ctx)
	defer end()
	var clients, watchers sync.WaitGroup
	for i := range mixedResources {
		watchers.Go(func() { mixedWatch(watching, cp, i) })
	}
	for i := range 5 {
		clients.Go(func() { mixedClient(ctx, cp, i) })
	}
	for _, server := range cp.Servers() {
		time.Sleep(300 * time.Millisecond)
		if err := server.Crash(ctx); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		if err := server.Restart(ctx); err != nil {
			return err
		}
	}
	clients.Wait()
	time.Sleep(time.Second) // of virtual time, for the watches
	end()
	watchers.Wait()
	return nil
}

var mixedResources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Group: "example.com", Version: "v1", Resource: "widgets"},
}

// mixedClient makes requests to a few objects that it shares with the others.
// Which ones is up to its number, not to the seed.
func mixedClient(ctx context.Context, cp *envtest.ControlPlane, number int) {
	client := dynamic.NewForConfigOrDie(cp.NewClient().AddUser(fmt.Sprintf("client-%d", number), "system:masters"))
	choose := rand.New(rand.NewPCG(uint64(number), 0))
	for i := range 40 {
		gvr := mixedResources[choose.IntN(len(mixedResources))]
		mixedRequest(ctx, client.Resource(gvr).Namespace("default"), gvr, choose, fmt.Sprintf("%d-%d", number, i))
		time.Sleep(time.Duration(choose.IntN(2)*choose.IntN(400)) * time.Millisecond)
	}
}

// mixedRequest makes one request; what becomes of it is in the trace.
func mixedRequest(ctx context.Context, objects dynamic.ResourceInterface, gvr schema.GroupVersionResource, choose *rand.Rand, mark string) {
	name := fmt.Sprintf("shared-%d", choose.IntN(3))
	switch choose.IntN(8) {
	case 0, 1:
		kinds := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "widgets": "Widget"}
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(gvr.GroupVersion().String())
		object.SetKind(kinds[gvr.Resource])
		object.SetName(name)
		_, _ = objects.Create(ctx, object, metav1.CreateOptions{})
	case 2:
		if object, err := objects.Get(ctx, name, metav1.GetOptions{}); err == nil {
			object.SetLabels(map[string]string{"updated": mark})
			_, _ = objects.Update(ctx, object, metav1.UpdateOptions{})
		}
	case 3:
		_, _ = objects.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"patched":%q}}}`, mark), metav1.PatchOptions{})
	case 4:
		_ = objects.Delete(ctx, name, metav1.DeleteOptions{})
	case 5:
		_, _ = objects.Get(ctx, name, metav1.GetOptions{})
	case 6:
		_, _ = objects.List(ctx, metav1.ListOptions{})
	case 7:
		_, _ = objects.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	}
}

// mixedWatch watches objects of a kind, again and again, until the context ends.
func mixedWatch(ctx context.Context, cp *envtest.ControlPlane, number int) {
	config := rest.CopyConfig(cp.NewClient().AddUser(fmt.Sprintf("watcher-%d", number), "system:masters"))
	objects := dynamic.NewForConfigOrDie(config).Resource(mixedResources[number]).Namespace("default")
	for ctx.Err() == nil {
		watch, err := objects.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for range watch.ResultChan() {
		}
	}
}
