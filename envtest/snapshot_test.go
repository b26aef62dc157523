package envtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/internal/sample"
)

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	gadgets    = schema.GroupVersionResource{Group: "later.example.com", Version: "v1", Resource: "gadgets"}
)

// TestReset turns a server upside down, a thousand objects and two CRDs, and
// finds it as it was, by lists and by what informers were told.
func TestReset(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		testReset(t, envtest.Start(t, envtest.WithCRDs(widgetCRD())), 1, deletedInRealTime...)
	})
	t.Run("virtual", func(t *testing.T) {
		rounds := 1
		if sample.All() {
			rounds = 2
		}
		envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) { testReset(t, cp, rounds, "deleted") },
			envtest.WithCRDs(widgetCRD()))
	})
	t.Run("embedded", func(t *testing.T) {
		sample.Long(t)
		cp := envtest.Start(t, envtest.WithStore(embedded.New(embedded.Config{})), envtest.WithCRDs(widgetCRD()))
		testReset(t, cp, 1, deletedInRealTime...)
	})
}

// deletedInRealTime is how an informer sees what Reset deletes. A watch cache ends the watch of a client
// for which more than ten events have waited for longer than a time budget of at most 100 ms, as on a busy
// machine, twice maybe before the client has read anything: then the informer lists, and only misses
// what is gone. In virtual time no client is that late, and each deletion is an event.
var deletedInRealTime = []string{"deleted", "deleted unseen"}

func testReset(t *testing.T, cp *envtest.ControlPlane, rounds int, deleted ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	awaitBoot(ctx, t, cp)
	boot := allObjects(ctx, t, cp)
	seen := followObjects(ctx, t, cp, configMaps, widgets)

	var created []string
	for round := range rounds { // the second time from what the first has restored
		created = upset(ctx, t, cp)
		if round == 0 {
			seen.follow(gadgets)
		}
		seen.await(ctx, t, created, "added")
		require.NoError(t, cp.Reset(ctx))
		require.Empty(t, cmp.Diff(boot, allObjects(ctx, t, cp)), "round %d: -boot +reset", round)
		seen.await(ctx, t, created, deleted...)
		// What is gone is not served, what is back is.
		client := dynamic.NewForConfigOrDie(cp.Config())
		_, err := client.Resource(gadgets).List(ctx, metav1.ListOptions{})
		assert.True(t, apierrors.IsNotFound(err), "list of a CRD that went: %v", err)
		list, err := client.Resource(widgets).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		assert.True(t, err == nil && len(list.Items) == 0, "list of a CRD that is back: %v, %v", list, err)
	}
}

// TestResetServersWrites leaves alone what a server has changed of an object that only servers have written, also in
// a second boot, which begins with the objects of the first.
func TestResetServersWrites(t *testing.T) {
	for _, boot := range []string{"first", "second"} {
		t.Run(boot, func(t *testing.T) {
			cp := envtest.Start(t)
			server := rest.CopyConfig(cp.Config())
			server.Impersonate = rest.ImpersonationConfig{
				UserName: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup},
			}
			schemas := kubernetes.NewForConfigOrDie(server).FlowcontrolV1().FlowSchemas()
			changed := []byte(`{"metadata":{"annotations":{"changed":"yes"}}}`)
			_, err := schemas.Patch(t.Context(), "probes", types.MergePatchType, changed, metav1.PatchOptions{})
			require.NoError(t, err)
			require.NoError(t, cp.Reset(t.Context()))
			found, err := schemas.Get(t.Context(), "probes", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, "yes", found.Annotations["changed"])
		})
	}
}

// awaitBoot waits for what a server writes by itself in the background, maybe a
// moment after it is ready.
func awaitBoot(ctx context.Context, t *testing.T, cp *envtest.ControlPlane) {
	t.Helper()
	core := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1()
	for name, watchOne := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"kubernetes":                         core.Services("default").Watch,
		"extension-apiserver-authentication": core.ConfigMaps("kube-system").Watch,
		"kube-apiserver-legacy-service-account-token-tracking": core.ConfigMaps("kube-system").Watch,
	} {
		w, err := watchOne(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		require.NoError(t, err)
		_, ok := <-w.ResultChan()
		require.True(t, ok, "%s has not appeared", name)
		w.Stop()
	}
	// Its controller looks every ten seconds, and the first time maybe before it can see what it has created.
	client := kubernetes.NewForConfigOrDie(cp.Config())
	cidrs, err := client.NetworkingV1().ServiceCIDRs().Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	defer cidrs.Stop()
	for event := range cidrs.ResultChan() {
		if cidr, ok := event.Object.(*networkingv1.ServiceCIDR); ok && len(cidr.Status.Conditions) > 0 {
			return
		}
	}
	t.Fatal("the ServiceCIDR does not become ready")
}

// allObjects returns every object of every resource that can be listed, as JSON
// without its resource version, by resource and name. It leaves out the leases
// by which servers tell that they are alive, and the Events that they write
// about their own objects whenever they like.
func allObjects(ctx context.Context, t *testing.T, cp *envtest.ControlPlane) map[string]string {
	t.Helper()
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(cp.Config()).ServerPreferredResources()
	require.NoError(t, err)
	client := dynamic.NewForConfigOrDie(cp.Config())
	objects := map[string]string{}
	for _, resource := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists) {
		gv, _ := schema.ParseGroupVersion(resource.GroupVersion)
		for _, api := range resource.APIResources {
			for _, version := range []string{"", "0"} {
				list, err := client.Resource(gv.WithResource(api.Name)).List(ctx, metav1.ListOptions{ResourceVersion: version})
				if apierrors.IsNotFound(err) && gv.Group == gadgets.Group {
					continue // discovery is a moment behind
				}
				require.NoError(t, err, "list %s", api.Name)
				for _, item := range list.Items {
					if item.GetLabels()["apiserver.kubernetes.io/identity"] != "" || api.Name == "events" {
						continue
					}
					item.SetResourceVersion("")
					text, _ := json.Marshal(item.Object)
					objects[fmt.Sprintf("%s %s/%s at %q", api.Name, item.GetNamespace(), item.GetName(), version)] = string(text)
				}
			}
		}
	}
	return objects
}

// upset creates, changes and deletes some thousand objects, and returns those
// that an informer sees go at a Reset.
func upset(ctx context.Context, t *testing.T, cp *envtest.ControlPlane) []string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	crd := widgetCRD()
	crd.Name, crd.Spec.Group = gadgets.GroupResource().String(), gadgets.Group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"}
	must(cp.InstallCRDs(ctx, crd))
	client, objects := kubernetes.NewForConfigOrDie(cp.Config()), dynamic.NewForConfigOrDie(cp.Config())
	var created []string
	for n := range 20 {
		namespace := fmt.Sprintf("team-%d", n)
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		must(err)
		for i := range 18 {
			for _, resource := range []schema.GroupVersionResource{configMaps, widgets, gadgets} {
				object := &unstructured.Unstructured{Object: map[string]any{}}
				object.SetGroupVersionKind(resource.GroupVersion().WithKind(map[string]string{"configmaps": "ConfigMap", "widgets": "Widget", "gadgets": "Gadget"}[resource.Resource]))
				object.SetName(fmt.Sprintf("thing-%d", i))
				name := fmt.Sprintf("%s %s/%s", resource.Resource, namespace, object.GetName())
				one := objects.Resource(resource).Namespace(namespace)
				object, err := one.Create(ctx, object, metav1.CreateOptions{})
				must(err)
				if i%3 == 1 {
					object.SetLabels(map[string]string{"changed": "yes"})
					_, err = one.Update(ctx, object, metav1.UpdateOptions{})
					must(err)
				}
				if i%3 == 2 {
					must(one.Delete(ctx, object.GetName(), metav1.DeleteOptions{}))
					continue
				}
				created = append(created, name)
			}
		}
		_, err = client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "svc"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		must(err)
	}
	// What was there at boot is changed and deleted too.
	must(client.RbacV1().ClusterRoles().Delete(ctx, "view", metav1.DeleteOptions{}))
	_, err := client.CoreV1().Namespaces().Patch(ctx, "default", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	must(err)
	must(client.CoreV1().Services("team-0").Delete(ctx, "svc", metav1.DeleteOptions{}))
	return created
}

// followed is what informers saw.
type followed struct {
	factory dynamicinformer.DynamicSharedInformerFactory
	stop    <-chan struct{}

	mu    sync.Mutex
	seen  map[string]string // last event, by resource and name
	moved chan struct{}     // closed at the next event
}

// followObjects runs informers until the test ends.
func followObjects(ctx context.Context, t *testing.T, cp *envtest.ControlPlane, resources ...schema.GroupVersionResource) *followed {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	d := &followed{
		factory: dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(cp.Config()), 0),
		stop:    ctx.Done(), seen: map[string]string{}, moved: make(chan struct{}),
	}
	t.Cleanup(func() {
		cancel()
		d.factory.Shutdown()
	})
	for _, resource := range resources {
		d.follow(resource)
	}
	return d
}

func (d *followed) follow(resource schema.GroupVersionResource) {
	note := func(event string, object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			event, object = event+" unseen", gone.Obj
		}
		o := object.(*unstructured.Unstructured)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.seen[fmt.Sprintf("%s %s/%s", resource.Resource, o.GetNamespace(), o.GetName())] = event
		close(d.moved)
		d.moved = make(chan struct{})
	}
	_, err := d.factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note("added", object) },
		DeleteFunc: func(object any) { note("deleted", object) },
	})
	if err != nil {
		panic(err) // only of an informer that has stopped
	}
	d.factory.Start(d.stop)
}

// await waits until the last event of each object is a wanted one.
func (d *followed) await(ctx context.Context, t *testing.T, objects []string, wanted ...string) {
	t.Helper()
	for {
		d.mu.Lock()
		moved := d.moved
		var wrong []string
		for _, object := range objects {
			if event := d.seen[object]; !slices.Contains(wanted, event) {
				wrong = append(wrong, object+": "+event)
			}
		}
		d.mu.Unlock()
		if len(wrong) == 0 {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			t.Fatalf("%d of %d objects not %s, such as %s", len(wrong), len(objects), wanted[0], strings.Join(wrong[:min(3, len(wrong))], "; "))
		}
	}
}

// TestResetBringsCRDsBack deletes a definition of boot, and what was stored by
// it.
func TestResetBringsCRDsBack(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ctx := t.Context()
		awaitBoot(ctx, t, cp)
		boot := allObjects(ctx, t, cp)
		crds := apiextensionsclient.NewForConfigOrDie(cp.Config()).ApiextensionsV1().CustomResourceDefinitions()
		for _, wait := range []time.Duration{0, time.Minute} { // with the storage not yet, and long torn down
			require.NoError(t, crds.Delete(ctx, "widgets.example.com", metav1.DeleteOptions{}))
			time.Sleep(wait)
			require.NoError(t, cp.Reset(ctx))
			assert.Empty(t, cmp.Diff(boot, allObjects(ctx, t, cp)), "after %s: -boot +reset", wait)
			createWidget(ctx, t, cp.Config(), "again")
		}
	}, envtest.WithCRDs(widgetCRD()))
}

func createWidget(ctx context.Context, t *testing.T, config *rest.Config, name string) {
	t.Helper()
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "namespace": "default"},
	}}
	_, err := dynamic.NewForConfigOrDie(config).Resource(widgets).Namespace("default").Create(ctx, widget, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestRestoreAndFork goes back and forth between two states, and lets a fork live
// on beside its parent.
func TestRestoreAndFork(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ctx := t.Context()
		client := kubernetes.NewForConfigOrDie(cp.Config())
		names := func(client kubernetes.Interface) (names []string) {
			t.Helper()
			list, err := client.CoreV1().ServiceAccounts("default").List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			return names
		}
		account := func(client kubernetes.Interface, name string) {
			t.Helper()
			_, err := client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		snapshot := func() *envtest.Snapshot {
			t.Helper()
			s, err := cp.Snapshot(ctx)
			require.NoError(t, err)
			return s
		}
		account(client, "robot")
		token := newToken(t, client)
		first := snapshot()
		account(client, "second")
		second := snapshot()
		for range 2 {
			for _, to := range []struct {
				snapshot *envtest.Snapshot
				want     []string
			}{{first, []string{"robot"}}, {second, []string{"robot", "second"}}} {
				require.NoError(t, cp.Restore(ctx, to.snapshot))
				assert.Empty(t, cmp.Diff(to.want, names(client)), "-want +restored")
			}
		}

		fork, err := cp.Fork(ctx, first)
		require.NoError(t, err)
		defer func() {
			assert.NoError(t, fork.Stop(ctx))
		}()
		forked := kubernetes.NewForConfigOrDie(fork.Config())
		assert.NoError(t, whoAmI(ctx, fork, token), "the fork refuses a token of its parent")
		account(forked, "of-the-fork")
		assert.Empty(t, cmp.Diff([]string{"of-the-fork", "robot"}, names(forked)), "-want +fork")
		assert.Empty(t, cmp.Diff([]string{"robot", "second"}, names(client)), "-want +parent")
		assert.ErrorContains(t, fork.Restore(ctx, first), "fork it instead", "restored another's snapshot")
		_, err = fork.Fork(ctx, first)
		assert.Error(t, err, "forked another's snapshot")
		_, err = cp.Fork(ctx, first, envtest.WithStore(cp.Store()))
		assert.Error(t, err, "a fork on its parent's store")
		_, err = cp.Fork(ctx, first, envtest.WithClock(time.Now()))
		assert.ErrorContains(t, err, "WithClock does not go with it")
	})
}

// TestResetWaits holds a watch cache: Reset must not say that all is as it was
// while lists from that cache are not.
func TestResetWaits(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		client := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
		_, err := client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stale"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		frozen := inject(t, cp, "freeze cache/configmaps")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.ErrorContains(t, cp.Reset(ctx), "the watch cache of configmaps has not caught up", "reset with a watch cache that is held")
		released := make(chan struct{})
		go func() {
			defer close(released)
			time.Sleep(time.Minute)
			frozen.Remove()
		}()
		begin := time.Now()
		assert.NoError(t, cp.Reset(t.Context()))
		assert.Equal(t, time.Minute, time.Since(begin), "reset again: when the cache is let go")
		<-released
		list, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		assert.True(t, err == nil && len(list.Items) == 0, "after: %v, %v", list, err)
	})
}

// TestResetRefuses has a reason for each refusal.
func TestResetRefuses(t *testing.T) {
	held, err := envtest.Launch(t.Context(), envtest.WithFaults("hold hook/start-apiextensions-controllers"))
	require.NoError(t, err)
	err = held.Reset(t.Context())
	assert.True(t, errors.Is(err, storage.ErrNoSnapshots) && strings.Contains(err.Error(), "right after boot"), "hooks held: %v", err)
	assert.NoError(t, held.Stop(t.Context()))
}

// TestLateObjects fails when a server writes anything in the background after its
// boot that Reset would delete.
func TestLateObjects(t *testing.T) {
	sample.Long(t)
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		time.Sleep(time.Hour)
		before := allObjects(t.Context(), t, cp)
		require.NoError(t, cp.Reset(t.Context()))
		assert.Empty(t, cmp.Diff(before, allObjects(t.Context(), t, cp)), "-idle +reset")
	})
}

// TestResetAfterRestore resets what a restore has brought back in a state that is
// not the boot's.
func TestResetAfterRestore(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ctx := t.Context()
		roles := kubernetes.NewForConfigOrDie(cp.Config()).RbacV1().ClusterRoles()
		label := func() string {
			t.Helper()
			role, err := roles.Get(ctx, "edit", metav1.GetOptions{})
			require.NoError(t, err)
			return role.Labels["changed"]
		}
		reset := func() {
			t.Helper()
			require.NoError(t, cp.Reset(ctx))
			assert.Empty(t, label(), "the label after a reset")
		}
		_, err := roles.Patch(ctx, "edit", types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"yes"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		changed, err := cp.Snapshot(ctx)
		require.NoError(t, err)
		reset()
		require.NoError(t, cp.Restore(ctx, changed))
		assert.Equal(t, "yes", label(), "the label after the restore")
		reset()
	})
}
