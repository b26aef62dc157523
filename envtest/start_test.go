package envtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/trace"
)

// TestStart boots the chain on each store that needs nothing installed, and
// looks at it as a client does.
func TestStart(t *testing.T) {
	stores := map[string][]envtest.Option{
		"memory":   nil,
		"embedded": {envtest.WithStore(embedded.New(embedded.Config{}))},
	}
	for name, opts := range stores {
		t.Run(name, func(t *testing.T) {
			cp := envtest.Start(t, opts...)
			client := kubernetes.NewForConfigOrDie(cp.Config())
			version, err := client.Discovery().ServerVersion()
			require.NoError(t, err)
			assert.Equal(t, linked.Release(), version.GitVersion, "what /version says")
			_, err = client.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
			assert.NoError(t, err, "a ready server has its system namespaces")
			role, err := client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, "kube-apiserver", role.ManagedFields[0].Manager, "who the server writes its own objects as")
			assert.Empty(t, redChecks(t, cp), "ready, but red")
		})
	}
}

// TestStartTraces finds every stage and every hook of a boot and a stop in the
// trace, each with its start and its end.
func TestStartTraces(t *testing.T) {
	cp := envtest.Start(t)
	require.NoError(t, cp.Stop(t.Context()))
	open := map[string]int{}
	seen := map[string]bool{}
	for _, record := range cp.Trace().Records() {
		switch event := record.Event.(type) {
		case trace.Stage:
			count(open, "stage "+event.Name, event.Phase)
		case trace.Hook:
			count(open, string(event.Kind)+" "+event.Name, event.Phase)
		case trace.Signal:
			seen[event.Name] = true
		}
	}
	for what, n := range open {
		assert.Zero(t, n, "%s: more starts than ends", what)
	}
	for _, hook := range hooksOf(cp) {
		_, ok := open["post-start "+hook]
		assert.True(t, ok, "post-start hook %s is not in the trace", hook)
	}
	for _, signal := range []string{"MuxAndDiscoveryComplete", "HasBeenReady", "ShutdownInitiated", "InFlightRequestsDrained"} {
		assert.True(t, seen[signal], "lifecycle signal %s is not in the trace", signal)
	}
}

func count(open map[string]int, what string, phase trace.Phase) {
	switch phase {
	case trace.Start:
		open[what]++
	case trace.End:
		open[what]--
	}
}

// TestAnsweredBy sees which server of the chain answers.
func TestAnsweredBy(t *testing.T) {
	cp := envtest.Start(t, envtest.WithCRDs(widgetCRD()))
	client := kubernetes.NewForConfigOrDie(cp.Config()).RESTClient()
	for path, server := range map[string]string{
		"/apis/apiregistration.k8s.io/v1/apiservices": "aggregator",
		"/api/v1/namespaces":                          "kube-apiserver",
		"/apis/example.com/v1/widgets":                "apiextensions",
		"/no/such/path":                               "not-found",
	} {
		_ = client.Get().AbsPath(path).Do(t.Context()).Error()
		record, err := cp.Trace().Await(t.Context(), func(r trace.Record) bool {
			request, ok := r.Event.(trace.Request)
			return ok && request.Phase == trace.End && request.URI == path && request.User == envtest.AdminUser
		})
		require.NoError(t, err)
		assert.Equal(t, server, record.Event.(trace.Request).Server, "who answered %s", path)
	}
}

func TestUsers(t *testing.T) {
	cp := envtest.Start(t)
	jane := kubernetes.NewForConfigOrDie(cp.Config(envtest.User("jane", "developers")))
	_, err := jane.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err) && strings.Contains(err.Error(), `"jane"`), "a user without a role lists secrets: %v", err)
	anonymous := cp.Config()
	anonymous.BearerToken = ""
	_, err = kubernetes.NewForConfigOrDie(anonymous).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "an anonymous user lists namespaces: %v", err)
	stranger := cp.Config()
	stranger.BearerToken = "guess"
	_, err = kubernetes.NewForConfigOrDie(stranger).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsUnauthorized(err), "an unknown token gets in: %v", err)
}

// TestListFlags gives a list that has a default, which it replaces.
func TestListFlags(t *testing.T) {
	cp := envtest.Start(t, envtest.WithFlags("--authorization-mode=RBAC,Node"))
	_, err := kubernetes.NewForConfigOrDie(cp.Config(envtest.User("jane"))).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "a user without a role lists secrets: %v", err)
}

// TestFirstPod creates what newcomers create first. With the plugin it needs a service
// account that was not made.
func TestFirstPod(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "first"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	}
	for name, c := range map[string]struct {
		flags  []string
		refuse bool
	}{
		"default":              {nil, false},
		"another plugin off":   {[]string{"--disable-admission-plugins=PodSecurity"}, false},
		"plugin off, as it is": {[]string{"--disable-admission-plugins=ServiceAccount"}, false},
		"no plugin":            {[]string{"--admission-control="}, false},
		"plugin on":            {[]string{"--enable-admission-plugins=NodeRestriction,ServiceAccount"}, true},
		"plugin on, two words": {[]string{"--enable-admission-plugins", "ServiceAccount"}, true},
		"the only plugin":      {[]string{"--admission-control=ServiceAccount"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cp := envtest.Start(t, envtest.WithFlags(c.flags...))
			_, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
			refused := apierrors.IsForbidden(err)
			assert.True(t, refused == c.refuse && (err == nil || refused), "create a Pod: %v, want refused %t", err, c.refuse)
		})
	}
}

// TestDefaultsAreNobodysFlags gives flags that upstream refuses beside others.
func TestDefaultsAreNobodysFlags(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		assert.True(t, ready(t, cp))
	}, envtest.WithoutHousekeeping(), envtest.WithFlags(
		"--admission-control=", "--feature-gates=UnknownVersionInteroperabilityProxy=true", "--endpoint-reconciler-type=lease"))
}

func TestFlags(t *testing.T) {
	cp := envtest.Start(t, envtest.WithFlags("--runtime-config=apps/v1=false", "--feature-gates=WatchList=false"))
	client := kubernetes.NewForConfigOrDie(cp.Config())
	_, err := client.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsNotFound(err), "apps/v1 is switched off and served: %v", err)
}
