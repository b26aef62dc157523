package envtest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/internal/sample"
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
			ready, _ := crashing.Ready(t.Context())
			assert.False(t, ready, "a server that has crashed is ready")
			client.Use(nil)
			require.NoError(t, crashing.Restart(t.Context()))
			time.Sleep(retryPause)
			client.Use(crashing)
		}
		time.Sleep(retryPause)
		stop()
		compareHistory(t, cp, events)
		assert.Equal(t, 1+2*rounds, resumed(), "how often the watch was begun")
		assert.NoError(t, cp.Err(), "a crash on purpose is no failure")
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
				assert.NotEmpty(t, historyDiff(t, cp, events), "a watch that was lied to has told the history")
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
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, object any) { note(object) }})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		factory.WaitForCacheSyncWithContext(ctx)
		from := latest(t, cp)
		stop := write(t, configMapsOf(staying.Config()))
		for range 3 {
			time.Sleep(retryPause)
			crash(t, crashing)
			time.Sleep(retryPause)
			require.NoError(t, crashing.Restart(t.Context()))
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
			assert.Nil(t, without(revisions, seen[name]), "of %s was seen, beyond what was written or twice", name)
		}
		cached := map[string]string{}
		for _, object := range informer.GetStore().List() {
			cached[object.(*corev1.ConfigMap).Name] = object.(*corev1.ConfigMap).ResourceVersion
		}
		delete(cached, "kube-root-ca.crt")
		assert.Empty(t, cmp.Diff(state, cached), "what there is (-store +informer)")
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
				require.NoError(t, server.Restart(t.Context()))
			}
		}
		time.Sleep(retryPause)
		stop()
		compareHistory(t, cp, events)
		assert.Equal(t, 1+2*rounds, resumed(), "how often the watch was begun")
	}, envtest.WithReplicas(2))
}

// TestStopAndCrash compares what a server leaves behind that was stopped with
// what one does that has crashed.
func TestStopAndCrash(t *testing.T) {
	t.Parallel()
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		both := settledEndpoints(t, cp)
		leases := identityLeases(t, cp)
		leaving := cp.Servers()[1]

		require.NoError(t, leaving.Stop(t.Context()))
		assert.Empty(t, cmp.Diff(both[:1], endpoints(t, cp)), "endpoints after a stop (-want +got)")
		assert.Len(t, identityLeases(t, cp), 1, "identity leases after a stop")
		require.NoError(t, leaving.Restart(t.Context()))
		assert.Error(t, leaving.Restart(t.Context()), "a server that runs can be restarted")
		assert.Empty(t, cmp.Diff(both, settledEndpoints(t, cp)), "endpoints after a restart (-want +got)")
		assert.Equal(t, leases, identityLeases(t, cp), "identity leases after a restart")

		crash(t, leaving)
		assert.Empty(t, cmp.Diff(both, endpoints(t, cp)), "endpoints after a crash (-want +got)")
		time.Sleep(30 * time.Second) // the lease of the endpoint has 15, and is looked for every 10
		assert.Empty(t, cmp.Diff(both[:1], endpoints(t, cp)), "endpoints long after a crash (-want +got)")
		assert.Equal(t, leases, identityLeases(t, cp), "identity leases after a crash")
		if !sample.All() {
			return
		}
		time.Sleep(2*time.Hour + time.Minute) // the lease has one, and is looked for every hour
		assert.Len(t, identityLeases(t, cp), 1, "identity leases long after a crash")
	}, envtest.WithReplicas(2))
}

// TestStopAtOnce stops a server in the moment it is ready, on a store that has
// everything a boot makes. It is ready then before the CRDs it has are
// registered, for which upstream looks every 100ms: the delays see to it.
func TestStopAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New("kept")
		require.NoError(t, store.Start(t.Context()))
		for range 2 {
			began := time.Now()
			cp, err := envtest.Launch(t.Context(), envtest.WithStore(storage.Shared{Backend: store}),
				envtest.WithFaults("delay hook/kube-apiserver-autoregistration by=40ms"),
				envtest.WithFaults("delay hook/start-apiextensions-informers by=50ms"))
			require.NoError(t, err)
			t.Logf("ready after %s", time.Since(began))
			require.NoError(t, cp.Stop(t.Context()))
		}
		assert.NoError(t, store.Stop(t.Context()))
	})
}
