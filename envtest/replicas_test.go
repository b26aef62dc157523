package envtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/trace"
)

// TestReplicas writes at one server and hears of it at the other.
func TestReplicas(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		showReplicas(t, cp)
		assert.Empty(t, cmp.Diff([]string{"192.0.2.1", "192.0.2.2"}, settledEndpoints(t, cp)), "endpoints of the kubernetes service (-want +got)")
		assert.Len(t, identityLeases(t, cp), 2, "identity leases")
		servers := map[string]bool{}
		for _, rec := range cp.Trace().Records() {
			servers[rec.Server] = true
		}
		assert.True(t, servers["apiserver-0"] && servers["apiserver-1"], "the trace tells of the servers %v", servers)
	}, envtest.WithReplicas(2))
}

// TestReplicasOnEtcd is the same, and a crash, on a real etcd in real time.
func TestReplicasOnEtcd(t *testing.T) {
	t.Parallel()
	cp := envtest.Start(t, envtest.WithReplicas(2), envtest.WithStore(embedded.New(embedded.Config{})), envtest.WithListener("127.0.0.1:0"))
	showReplicas(t, cp)
	staying, crashing := cp.Servers()[0], cp.Servers()[1]
	remote := crashing.Config(envtest.User("admin", "system:masters"), envtest.Remote())
	broken, err := configMapsOf(remote).Watch(t.Context(), metav1.ListOptions{ResourceVersion: latest(t, cp)})
	require.NoError(t, err)
	client := cp.NewClient()
	client.Use(crashing)
	events, resumed := follow(t, cp, client.Config())
	writeBurst(t, configMapsOf(staying.Config()), "before", 20)
	crash(t, crashing)
	client.Use(nil)
	writeBurst(t, configMapsOf(staying.Config()), "during", 20)
	for range broken.ResultChan() { // what it has told, until it breaks
	}
	require.NoError(t, crashing.Restart(t.Context()))
	writeBurst(t, configMapsOf(remote), "after", 20)
	compareHistory(t, cp, events)
	assert.GreaterOrEqual(t, resumed(), 2, "the watch was never interrupted")
}

func showReplicas(t *testing.T, cp *envtest.ControlPlane) {
	t.Helper()
	at := [2]typedcorev1.ConfigMapInterface{configMapsOf(cp.Servers()[0].Config()), configMapsOf(cp.Servers()[1].Config())}
	for writer, reader := range map[int]int{0: 1, 1: 0} {
		watcher, err := at[reader].Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		name := fmt.Sprintf("from-%d", writer)
		createAt(t, at[writer], name)
		for event := range watcher.ResultChan() {
			if event.Object.(*corev1.ConfigMap).Name == name {
				break
			}
		}
		watcher.Stop()
		_, err = at[reader].Get(t.Context(), name, metav1.GetOptions{})
		assert.NoError(t, err)
	}
}

// TestReplicasLag has one server behind the store while the other is not.
func TestReplicasLag(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		fresh, stale := cp.Servers()[0], cp.Servers()[1]
		frozen := inject(t, cp, "freeze cache/configmaps server="+stale.Name())
		createAt(t, configMapsOf(fresh.Config()), "new")
		time.Sleep(time.Second)
		fromCache := metav1.GetOptions{ResourceVersion: "0"}
		_, err := configMapsOf(fresh.Config()).Get(t.Context(), "new", fromCache)
		assert.NoError(t, err)
		_, err = configMapsOf(stale.Config()).Get(t.Context(), "new", fromCache)
		assert.True(t, apierrors.IsNotFound(err), "the server that lags has seen it: %v", err)
		frozen.Remove()
		time.Sleep(time.Second)
		_, err = configMapsOf(stale.Config()).Get(t.Context(), "new", fromCache)
		assert.NoError(t, err)
	}, envtest.WithReplicas(2))
}

// TestPartitionedStore cuts one server off the store.
func TestPartitionedStore(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		whole, cut := cp.Servers()[0], cp.Servers()[1]
		watcher, err := configMapsOf(cut.Config()).Watch(t.Context(), metav1.ListOptions{ResourceVersion: latest(t, cp)})
		require.NoError(t, err)
		defer watcher.Stop()
		partition := inject(t, cp, "partition store server="+cut.Name())
		ready, red := cut.Ready(t.Context())
		assert.True(t, !ready && slices.Contains(red, "etcd-readiness"), "a server without a store is ready; its red checks are %v", red)
		ready, red = whole.Ready(t.Context())
		assert.True(t, ready, "the other is not ready: %v", red)
		createAt(t, configMapsOf(whole.Config()), "meanwhile")
		_, err = configMapsOf(cut.Config()).Create(t.Context(), newConfigMap("lost"), metav1.CreateOptions{})
		assert.Error(t, err, "a write without a store has succeeded")
		select {
		case event := <-watcher.ResultChan():
			t.Errorf("a watch without a store has told %v", event)
		default:
		}
		partition.Remove()
		assert.NoError(t, cp.WaitReady(t.Context()))
		event := <-watcher.ResultChan()
		assert.True(t, event.Type == watch.Added && event.Object.(*corev1.ConfigMap).Name == "meanwhile", "the watch goes on with %v", event)
		createAt(t, configMapsOf(cut.Config()), "again")
		_, err = configMapsOf(whole.Config()).Get(t.Context(), "lost", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "what was refused is there: %v", err)
		inject(t, cp, "partition store server="+cut.Name()) // and the end must not wait for it
	}, envtest.WithReplicas(2))
}

// TestClient moves a client from one server to another, and cuts it off both.
func TestClient(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		way := cp.NewClient()
		assert.Nil(t, way.Server(), "the server of a client is known before its first request")
		client := configMapsOf(way.Config())
		open := func() watch.Interface {
			watcher, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: latest(t, cp)})
			require.NoError(t, err)
			return watcher
		}
		ended := func(watcher watch.Interface) {
			t.Helper()
			for event := range watcher.ResultChan() {
				assert.Equal(t, watch.Error, event.Type, "a watch that breaks tells %v", event)
			}
		}
		watcher := open()
		assert.Same(t, cp.Servers()[0], way.Server(), "where a client goes")
		way.Use(cp.Servers()[1])
		ended(watcher)
		createAt(t, client, "moved")
		assert.Equal(t, "apiserver-1", served(cp, "POST", "/api/v1/namespaces/default/configmaps"), "where the request went")
		watcher = open()
		partition := inject(t, cp, "partition client name="+way.Name())
		ended(watcher)
		_, err := client.Get(t.Context(), "moved", metav1.GetOptions{})
		assert.ErrorContains(t, err, "no route to host", "a client that is cut off")
		partition.Remove()
		_, err = client.Get(t.Context(), "moved", metav1.GetOptions{})
		assert.NoError(t, err)
		crash(t, cp.Servers()[1])
		_, err = client.Get(t.Context(), "moved", metav1.GetOptions{})
		assert.Error(t, err, "a server that has crashed answers")
		way.Use(nil)
		_, err = client.Get(t.Context(), "moved", metav1.GetOptions{})
		assert.NoError(t, err)
	}, envtest.WithReplicas(2))
}

// TestReplicasReset goes back with several servers: each has noticed.
func TestReplicasReset(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		for round := range 3 {
			createAt(t, configMapsOf(cp.Servers()[round%2].Config()), "gone")
			require.NoError(t, cp.Reset(t.Context()))
			for _, server := range cp.Servers() {
				list, err := configMapsOf(server.Config()).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
				require.NoError(t, err)
				for _, found := range list.Items {
					assert.NotEqual(t, "gone", found.Name, "%s has not noticed the reset", server.Name())
				}
			}
		}
		crash(t, cp.Servers()[1])
		assert.ErrorContains(t, cp.Reset(t.Context()), "apiserver-1", "reset with a server that has crashed")
	}, envtest.WithReplicas(2))
}

func configMapsOf(config *rest.Config) typedcorev1.ConfigMapInterface {
	return kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
}

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func createAt(t *testing.T, client typedcorev1.ConfigMapInterface, name string) {
	t.Helper()
	_, err := client.Create(t.Context(), newConfigMap(name), metav1.CreateOptions{})
	require.NoError(t, err)
}

// latest is the revision that the store has now.
func latest(t testing.TB, cp *envtest.ControlPlane) string {
	t.Helper()
	list, err := configMapsOf(cp.Config()).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.ResourceVersion
}

// served returns which server has answered the last request like this.
func served(cp *envtest.ControlPlane, method, path string) (server string) {
	for _, rec := range cp.Trace().Records() {
		if request, ok := rec.Event.(trace.Request); ok && request.Method == method && strings.HasPrefix(request.URI, path) {
			server = rec.Server
		}
	}
	return server
}

// endpoints returns the addresses of the kubernetes service, sorted.
func endpoints(t *testing.T, cp *envtest.ControlPlane) (addresses []string) {
	t.Helper()
	slices, err := kubernetes.NewForConfigOrDie(cp.Config()).DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	require.NoError(t, err)
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			addresses = append(addresses, endpoint.Addresses...)
		}
	}
	return addresses
}

// settledEndpoints are those when each server has looked for the others.
func settledEndpoints(t *testing.T, cp *envtest.ControlPlane) []string {
	t.Helper()
	time.Sleep(30 * time.Second)
	return endpoints(t, cp)
}

func identityLeases(t *testing.T, cp *envtest.ControlPlane) (names []string) {
	t.Helper()
	leases, err := kubernetes.NewForConfigOrDie(cp.Config()).CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
	require.NoError(t, err)
	for _, lease := range leases.Items {
		names = append(names, lease.Name)
	}
	return names
}

func TestReplicasRefused(t *testing.T) {
	for want, opts := range map[string][]envtest.Option{
		"0 replicas":                        {envtest.WithReplicas(0)},
		"10 replicas":                       {envtest.WithReplicas(10)},
		"cannot share --advertise-address":  {envtest.WithReplicas(2), envtest.WithFlags("--advertise-address=10.1.1.1")},
		"2 replicas cannot share":           {envtest.WithReplicas(2), envtest.WithFlags("--advertise_address", "10.1.1.1")},
		"cannot share the listener address": {envtest.WithReplicas(2), envtest.WithListener("127.0.0.1:6443")},
	} {
		_, err := envtest.Launch(t.Context(), opts...)
		assert.ErrorContains(t, err, want)
	}
}
