package envtest_test

import (
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/trace"
)

func TestStartEmbedded(t *testing.T) {
	begin := time.Now()
	cp := envtest.Start(t, envtest.WithStore(embedded.New(embedded.Config{})))
	t.Log("start", time.Since(begin))
	client := kubernetes.NewForConfigOrDie(cp.Config())
	v, err := client.Discovery().ServerVersion()
	t.Log(v, err)
	ns, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(len(ns.Items))
	begin = time.Now()
	if err := cp.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	t.Log("stop", time.Since(begin))
}

func TestStartMemory(t *testing.T) {
	begin := time.Now()
	cp := envtest.Start(t)
	t.Log("start", time.Since(begin))
	begin = time.Now()
	if err := cp.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	t.Log("stop", time.Since(begin))
}

func TestSimulateFirst(t *testing.T) {
	wall := time.Now()
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		t.Log("ready at", time.Since(wall))
		time.Sleep(10 * time.Minute)
	})
}

func TestTimeline(t *testing.T) {
	cp := envtest.Start(t)
	cp.Stop(t.Context())
	trace.WriteText(os.Stderr, cp.Trace().Records(), trace.TextOptions{Verbose: true})
}

func TestStopLeft(t *testing.T) {
	cp := envtest.Start(t, envtest.WithStopTimeout(300*time.Millisecond))
	t.Log(cp.Stop(t.Context()))
}
