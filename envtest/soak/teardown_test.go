//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// TestTeardown starts and stops control planes one after another and side by
// side, with a client's informer open to each, some with several servers that
// crash, and compares the process with what it was.
func TestTeardown(t *testing.T) {
	const inARow, atOnce, ofSeveral = 50, 8, 2
	before, others, goroutines := lookAtProcess(t), lookAtUntouched(), goleak.IgnoreCurrent()
	files := openFiles(t)
	useOnce(t) // what a process makes once stays
	memory := heapInUse()

	for range inARow {
		useOnce(t)
	}
	var side sync.WaitGroup
	for range atOnce {
		side.Go(func() { useOnce(t) })
	}
	side.Wait()
	for range ofSeveral {
		side.Go(func() { crashOnce(t) })
	}
	side.Wait()

	goleak.VerifyNone(t, goroutines)
	assert.Empty(t, cmp.Diff(files, openFiles(t)), "open files (-before +after)")
	compareProcess(t, before)
	assert.Empty(t, cmp.Diff(others, lookAtUntouched()), "what is left as it is (-before +after)")
	grown := heapInUse() - memory
	assert.LessOrEqual(t, grown, int64(oneControlPlane), "%d control planes left %d MiB on the heap", inARow+atOnce+ofSeveral, grown>>20)
}

// oneControlPlane is less than what one control plane holds on the heap, in bytes.
const oneControlPlane = 30 << 20

// heapInUse is what cannot be collected, in bytes.
func heapInUse() int64 {
	for range 3 { // what a finalizer or a pool lets go is collected by the next
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestTeardownSeesLeaks shows that the comparisons of TestTeardown can fail.
func TestTeardownSeesLeaks(t *testing.T) {
	t.Setenv(steering, "30")
	before, others := lookAtProcess(t), lookAtUntouched()
	files, memory, goroutines := openFiles(t), heapInUse(), goleak.IgnoreCurrent()
	cp := envtest.Start(t, envtest.WithListener("127.0.0.1:0"), envtest.WithFlags("--feature-gates=WatchList=false", "--contention-profiling"))
	during := lookAtProcess(t)
	for row := range processState {
		assert.False(t, cmp.Equal(before[row], during[row]), "a running control plane does not change %s; does the test still look at it?", row)
	}
	assert.Empty(t, cmp.Diff(others, lookAtUntouched()), "what is left as it is (-before +during)")
	assert.False(t, cmp.Equal(files, openFiles(t)), "an open port is not seen among the open files")
	assert.GreaterOrEqual(t, heapInUse()-memory, int64(oneControlPlane), "a running control plane is not seen on the heap")
	require.NoError(t, cp.Stop(t.Context()))
	compareProcess(t, before)
	// Not while the server runs: goleak cannot read stacks of over a hundred frames.
	left := make(chan struct{})
	go func() { <-left }()
	assert.Error(t, goleak.Find(goroutines), "a goroutine that is left is not seen")
	close(left)
}

// useOnce is what a test does with a control plane.
func useOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cp, err := envtest.Launch(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	client := kubernetes.NewForConfigOrDie(cp.Config())
	factory := informers.NewSharedInformerFactory(client, 0)
	configMaps := factory.Core().V1().ConfigMaps().Informer()
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	_, err = client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	assert.NoError(t, err)
	assert.True(t, configMaps.HasSynced(), "informer has not synced")
	assert.NoError(t, cp.Stop(ctx))
	cancel()
	factory.Shutdown()
}

// crashOnce has two servers, of which one crashes and starts again, and the other
// is down when the control plane stops.
func crashOnce(t *testing.T) {
	cp, err := envtest.Launch(t.Context(), envtest.WithReplicas(2))
	if err != nil {
		t.Error(err)
		return
	}
	servers := cp.Servers()
	for _, step := range []func(context.Context) error{servers[0].Crash, servers[0].Restart, servers[1].Crash, cp.Stop} {
		assert.NoError(t, step(t.Context()))
	}
}

// openFiles lists what the process has open, sockets included, and how often.
func openFiles(t *testing.T) map[string]int {
	t.Helper()
	const fds = "/proc/self/fd"
	entries, err := os.ReadDir(fds)
	if err != nil {
		t.Skipf("open files can't be listed on this system: %v", err)
	}
	files := map[string]int{}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(fds, entry.Name()))
		if err != nil {
			continue // the descriptor of ReadDir itself
		}
		kind, _, _ := strings.Cut(target, ":[")
		files[kind]++
	}
	delete(files, filepath.Join("/proc", fmt.Sprint(os.Getpid()), "fd"))
	return files
}
