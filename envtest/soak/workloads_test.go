//go:build soak

package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"snowglobe.test/envtest"
)

// workload is what one seed runs.
type workload struct {
	options []envtest.Option
	run     func(context.Context, *envtest.ControlPlane) error
}

var workloads = map[string]workload{
	"mixed":    {[]envtest.Option{envtest.WithReplicas(2), envtest.WithCRDPaths("testdata/widgets.yaml")}, mixedRun},
	"election": {nil, electionRun},
	"informer": {[]envtest.Option{envtest.WithReplicas(2)}, informerRun},
	"chances":  {[]envtest.Option{envtest.WithReplicas(2), envtest.WithFaults(chances...)}, chancesRun},
}

// electionRun is a leader election of two clients whose store is cut off until the
// leader has lost its lease.
func electionRun(ctx context.Context, cp *envtest.ControlPlane) error {
	electing, end := context.WithCancel(ctx)
	defer end()
	var candidates sync.WaitGroup
	for _, name := range []string{"anna", "bert"} {
		client := kubernetes.NewForConfigOrDie(cp.NewClient().Config(envtest.User(name, "system:masters")))
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "default", "leader", client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		if err != nil {
			return err
		}
		config := leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(ctx context.Context) { <-ctx.Done() }, OnStoppedLeading: func() {}},
		}
		candidates.Go(func() {
			for electing.Err() == nil { // again, when it has lost the lease
				leaderelection.RunOrDie(electing, config)
			}
		})
	}
	time.Sleep(20 * time.Second)
	cut, err := cp.Faults().Inject("partition store")
	if err != nil {
		return err
	}
	time.Sleep(30 * time.Second)
	cut.Remove()
	time.Sleep(time.Minute)
	end()
	candidates.Wait()
	return nil
}

// informerRun is an informer that has to recover from a cut, a compaction and a
// crash, while a client writes.
func informerRun(ctx context.Context, cp *envtest.ControlPlane) error {
	watching, end := context.WithCancel(ctx)
	defer end()
	reader := kubernetes.NewForConfigOrDie(cp.NewClient().Config(envtest.User("reader", "system:masters")))
	factory := informers.NewSharedInformerFactory(reader, 0)
	factory.Core().V1().ConfigMaps().Informer()
	factory.StartWithContext(watching)
	factory.WaitForCacheSyncWithContext(watching)

	var writer sync.WaitGroup
	writing, endWriting := context.WithCancel(ctx)
	defer endWriting()
	writer.Go(func() {
		writeOn(writing, kubernetes.NewForConfigOrDie(cp.NewClient().Config(envtest.User("writer", "system:masters"))))
	})
	for _, step := range []func() error{
		func() error { return during(cp, 10*time.Second, "partition client caller=reader") },
		func() error { return during(cp, time.Second, "compact http/update resource=configmaps") },
		func() error { return cp.Servers()[0].Crash(ctx) },
		func() error { return cp.Servers()[0].Restart(ctx) },
	} {
		time.Sleep(3 * time.Second)
		if err := step(); err != nil {
			return err
		}
	}
	time.Sleep(10 * time.Second)
	endWriting()
	writer.Wait()
	time.Sleep(time.Second) // for the watch
	end()
	factory.Shutdown()
	return nil
}

// during has a rule for a while.
func during(cp *envtest.ControlPlane, d time.Duration, rule string) error {
	entry, err := cp.Faults().Inject(rule)
	if err != nil {
		return err
	}
	time.Sleep(d)
	entry.Remove()
	return nil
}

// writeOn writes to a few objects until the context ends.
func writeOn(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps("default")
	for i := 0; ctx.Err() == nil; i++ {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("written-", i%5)}, Data: map[string]string{"i": fmt.Sprint(i)}}
		if _, err := maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			_, _ = maps.Create(ctx, object, metav1.CreateOptions{})
		}
		time.Sleep(200 * time.Millisecond)
	}
}

var chances = []string{
	"fail store/put resource=configmaps with=unavailable probability=0.1",
	"delay store/* resource=secrets by=300ms probability=0.2",
	"lose-reply http/create resource=configmaps probability=0.1",
	"fail http/get with=503 retry-after=1s probability=0.1 caller=client-*",
	"duplicate http/patch probability=0.2",
}

// chancesRun is 300 requests of five clients to two servers of which one crashes,
// where five rules are left to chance.
func chancesRun(ctx context.Context, cp *envtest.ControlPlane) error {
	var clients sync.WaitGroup
	for i := range 5 {
		clients.Go(func() {
			client := dynamic.NewForConfigOrDie(cp.NewClient().Config(envtest.User(fmt.Sprintf("client-%d", i), "system:masters")))
			choose := rand.New(rand.NewPCG(uint64(i), 1))
			for j := range 60 {
				gvr := mixedResources[choose.IntN(2)] // no widgets here
				mixedRequest(ctx, client.Resource(gvr).Namespace("default"), gvr, choose, fmt.Sprintf("%d-%d", i, j))
				time.Sleep(time.Duration(choose.IntN(100)) * time.Millisecond)
			}
		})
	}
	time.Sleep(time.Second)
	if err := cp.Servers()[1].Crash(ctx); err != nil {
		return err
	}
	time.Sleep(time.Second)
	if err := cp.Servers()[1].Restart(ctx); err != nil {
		return err
	}
	clients.Wait()
	return nil
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
	client := dynamic.NewForConfigOrDie(cp.NewClient().Config(envtest.User(fmt.Sprintf("client-%d", number), "system:masters")))
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
	config := rest.CopyConfig(cp.NewClient().Config(envtest.User(fmt.Sprintf("watcher-%d", number), "system:masters")))
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
