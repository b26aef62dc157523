package envtest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/chain/bootstrap"
	"snowglobe.test/envtest/trace"
)

// TestBootObjects compares what a boot finds that another one wrote with what it writes itself.
func TestBootObjects(t *testing.T) {
	envtest.Start(t) // by now there has been a boot
	found, wrote := startAndUse(t), startAndUse(t, envtest.WithObserver(func(trace.Record) {}))
	assert.Less(t, creates(found), 10)
	assert.Greater(t, creates(wrote), 60)
	for _, resource := range []schema.GroupVersionResource{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "flowschemas"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "prioritylevelconfigurations"},
		{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"},
		{Version: "v1", Resource: "namespaces"},
	} {
		one, other := contents(t, found, resource), contents(t, wrote, resource)
		assert.Equal(t, other.specs, one.specs, resource)
		for _, uid := range one.uids {
			assert.NotContains(t, other.uids, uid, resource)
		}
	}
}

// startAndUse starts a control plane and uses at once what is there when a server is ready.
func startAndUse(t *testing.T, options ...envtest.Option) *envtest.ControlPlane {
	cp := envtest.Start(t, options...)
	client := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1()
	const info = "extension-apiserver-authentication"
	_, err := client.ConfigMaps("kube-system").Get(t.Context(), info, metav1.GetOptions{})
	assert.NoError(t, err)
	_, err = client.Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	assert.NoError(t, err)
	return cp
}

// TestBootObjectsRepaired restarts a server, which brings back a role that somebody has deleted.
func TestBootObjectsRepaired(t *testing.T) {
	envtest.Start(t)
	cp := envtest.Start(t)
	roles := kubernetes.NewForConfigOrDie(cp.Config()).RbacV1().ClusterRoles()
	require.NoError(t, roles.Delete(t.Context(), "view", metav1.DeleteOptions{}))
	server := cp.Servers()[0]
	require.NoError(t, server.Stop(t.Context()))
	require.NoError(t, server.Restart(t.Context()))
	_, err := roles.Get(t.Context(), "view", metav1.GetOptions{})
	assert.NoError(t, err)
}

// TestBootHooks fails when upstream has no hook of a name any more that the chain treats apart: a boot would
// only get slower.
func TestBootHooks(t *testing.T) {
	var names []string
	for _, record := range envtest.Start(t).Trace().Records() {
		if hook, ok := record.Event.(trace.Hook); ok {
			names = append(names, hook.Name)
		}
	}
	assert.Subset(t, names, []string{
		"generic-apiserver-start-informers", "start-apiextensions-informers", "start-kube-aggregator-informers",
		bootstrap.ServiceCIDRHook, bootstrap.AuthenticationInfoHook,
	})
}

// creates counts the cluster roles that the servers of a control plane have created.
func creates(cp *envtest.ControlPlane) (count int) {
	for _, record := range cp.Trace().Records() {
		request, ok := record.Event.(trace.Request)
		if ok && request.Method == http.MethodPost && request.URI == "/apis/rbac.authorization.k8s.io/v1/clusterroles" {
			count++
		}
	}
	return count
}

type bootContents struct {
	specs map[string]any // all but metadata, conditions and what the server keeps there
	uids  []string
}

func contents(t *testing.T, cp *envtest.ControlPlane, resource schema.GroupVersionResource) bootContents {
	list, err := dynamic.NewForConfigOrDie(cp.Config()).Resource(resource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	c := bootContents{specs: map[string]any{}}
	for _, item := range list.Items {
		content := runtime.DeepCopyJSON(item.Object)
		delete(content, "metadata")
		delete(content, "status")
		content["labels"], content["annotations"] = item.GetLabels(), item.GetAnnotations()
		c.specs[item.GetNamespace()+"/"+item.GetName()] = content
		c.uids = append(c.uids, string(item.GetUID()))
	}
	return c
}
