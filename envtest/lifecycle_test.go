package envtest_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/memory"
)

// TestCrashAndResume watches through a server that crashes and starts again,
// while others write, as behind a load balancer: no event is missing, and none
// comes twice.
func TestCrashAndResume(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		staying, crashing := cp.Servers()[0], cp.Servers()[1]
		client := cp.NewClient()
		client.Use(crashing)
		events, resumed := follow(t, cp, client.Config())
		stop := write(t, configMapsOf(staying.Config()))
		const rounds = 4
		for range rounds {
			time.Sleep(retryPause)
			crash(t, crashing)
			if ready, _ := crashing.Ready(t.Context()); ready {
				t.Error("a server that has crashed is ready")
			}
			client.Use(nil)
			if err := crashing.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(retryPause)
			client.Use(crashing)
		}
		time.Sleep(retryPause)
		stop()
		compareHistory(t, cp, events)
		if resumed() != 1+2*rounds {
			t.Errorf("the watch was begun %d times", resumed())
		}
		if err := cp.Err(); err != nil {
			t.Error("a crash on purpose is no failure:", err)
		}
	}, envtest.WithReplicas(2))
}

// TestHistorySeesFaults shows that the comparison with the history can fail: a watch
// loses one event, or is told one twice.
func TestHistorySeesFaults(t *testing.T) {
	for name, rule := range map[string]string{
		"missing": "drop watch/configmaps verb=modified nth=3",
		"doubled": "duplicate watch/configmaps verb=modified nth=3",
	} {
		t.Run(name, func(t *testing.T) {
			envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
				events, _ := follow(t, cp, cp.Config())
				stop := write(t, configMapsOf(cp.Config()))
				time.Sleep(retryPause)
				stop()
				if historyDiff(t, cp, events) == "" {
					t.Error("a watch that was lied to has told the history")
				}
			}, envtest.WithFaults(rule))
		})
	}
}

// TestCrashAndRelist has an informer that knows one server only. What it was not
// told while the server was away it sees in a new list, as the history says.
func TestCrashAndRelist(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		staying, crashing := cp.Servers()[0], cp.Servers()[1]
		factory := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(crashing.Config()), 0, informers.WithNamespace("default"))
		seen := map[string][]string{}
		note := func(object any) {
			found := object.(*corev1.ConfigMap)
			seen[found.Name] = append(seen[found.Name], found.ResourceVersion)
		}
		informer := factory.Core().V1().ConfigMaps().Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, object any) { note(object) }}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		factory.WaitForCacheSyncWithContext(ctx)
		from := latest(t, cp)
		stop := write(t, configMapsOf(staying.Config()))
		for range 3 {
			time.Sleep(retryPause)
			crash(t, crashing)
			time.Sleep(retryPause)
			if err := crashing.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		createAt(t, configMapsOf(cp.Config()), lastWrite)
		time.Sleep(time.Minute) // the pause between two tries of a reflector grows to half of it
		cancel()
		factory.Shutdown()

		written, state := map[string][]string{}, map[string]string{}
		for _, change := range history(t, cp, from) {
			if change.Type == watch.Deleted {
				delete(state, change.Name)
				continue
			}
			state[change.Name] = change.Revision
			written[change.Name] = append(written[change.Name], change.Revision)
		}
		for name, revisions := range written {
			if left := without(revisions, seen[name]); left != nil {
				t.Errorf("of %s was seen, beyond what was written or twice: %v", name, left)
			}
		}
		cached := map[string]string{}
		for _, object := range informer.GetStore().List() {
			cached[object.(*corev1.ConfigMap).Name] = object.(*corev1.ConfigMap).ResourceVersion
		}
		delete(cached, "kube-root-ca.crt")
		if diff := cmp.Diff(state, cached); diff != "" {
			t.Errorf("what there is (-store +informer):\n%s", diff)
		}
	}, envtest.WithReplicas(2))
}

// without takes a sequence out of another in which it is contained, and returns
// what of it is not.
func without(all, some []string) []string {
	for _, one := range all {
		if len(some) > 0 && some[0] == one {
			some = some[1:]
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some
}

// TestRollingCrash crashes one server after the other, below a watch and a writer
// that go to whichever runs.
func TestRollingCrash(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		events, resumed := follow(t, cp, cp.NewClient().Config())
		stop := write(t, configMapsOf(cp.Config()))
		const rounds = 3
		for range rounds {
			for _, server := range cp.Servers() {
				time.Sleep(retryPause)
				crash(t, server)
				time.Sleep(50 * time.Millisecond)
				if err := server.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(retryPause)
		stop()
		compareHistory(t, cp, events)
		if resumed() != 1+2*rounds {
			t.Errorf("the watch was begun %d times", resumed())
		}
	}, envtest.WithReplicas(2))
}

// TestStopAndCrash compares what a server leaves behind that was stopped with
// what one does that has crashed.
func TestStopAndCrash(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		both := settledEndpoints(t, cp)
		leases := identityLeases(t, cp)
		leaving := cp.Servers()[1]

		if err := leaving.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(both[:1], endpoints(t, cp)); diff != "" {
			t.Errorf("endpoints after a stop (-want +got):\n%s", diff)
		}
		if left := identityLeases(t, cp); len(left) != 1 {
			t.Errorf("identity leases after a stop: %v", left)
		}
		if err := leaving.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := leaving.Restart(t.Context()); err == nil {
			t.Error("a server that runs can be restarted")
		}
		if diff := cmp.Diff(both, settledEndpoints(t, cp)); diff != "" {
			t.Errorf("endpoints after a restart (-want +got):\n%s", diff)
		}
		if again := identityLeases(t, cp); !slices.Equal(again, leases) {
			t.Errorf("identity leases: %v, and after a restart %v", leases, again)
		}

		crash(t, leaving)
		if diff := cmp.Diff(both, endpoints(t, cp)); diff != "" {
			t.Errorf("endpoints after a crash (-want +got):\n%s", diff)
		}
		time.Sleep(30 * time.Second) // the lease of the endpoint has 15, and is looked for every 10
		if diff := cmp.Diff(both[:1], endpoints(t, cp)); diff != "" {
			t.Errorf("endpoints long after a crash (-want +got):\n%s", diff)
		}
		if left := identityLeases(t, cp); !slices.Equal(left, leases) {
			t.Errorf("identity leases after a crash: %v", left)
		}
		time.Sleep(2*time.Hour + time.Minute) // the lease has one, and is looked for every hour
		if left := identityLeases(t, cp); len(left) != 1 {
			t.Errorf("identity leases long after a crash: %v", left)
		}
	}, envtest.WithReplicas(2))
}

// TestStopAtOnce stops a server in the moment it is ready, on a store that has
// everything a boot makes. It is ready then before the CRDs it has are
// registered, for which upstream looks every 100ms: the delays see to it.
func TestStopAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New("kept")
		if err := store.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			began := time.Now()
			cp, err := envtest.Launch(t.Context(), envtest.WithSharedStore(store),
				envtest.WithFaults("delay hook/kube-apiserver-autoregistration by=40ms"),
				envtest.WithFaults("delay hook/start-apiextensions-informers by=50ms"))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("ready after %s", time.Since(began))
			if err := cp.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
