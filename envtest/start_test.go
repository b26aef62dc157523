package envtest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
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
			if err != nil {
				t.Fatal(err)
			}
			if version.GitVersion != envtest.Release() {
				t.Errorf("/version says %s, linked is %s", version.GitVersion, envtest.Release())
			}
			if _, err := client.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{}); err != nil {
				t.Errorf("a ready server has its system namespaces: %v", err)
			}
			role, err := client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if manager := role.ManagedFields[0].Manager; manager != "kube-apiserver" {
				t.Errorf("the server writes its own objects as %q", manager)
			}
			if red := redChecks(t, cp); len(red) > 0 {
				t.Errorf("ready, but red: %v", red)
			}
		})
	}
}

// TestStartTraces finds every stage and every hook of a boot and a stop in the
// trace, each with its start and its end.
func TestStartTraces(t *testing.T) {
	cp := envtest.Start(t)
	if err := cp.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
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
		if n != 0 {
			t.Errorf("%s: %d starts more than ends", what, n)
		}
	}
	for _, hook := range hooksOf(cp) {
		if _, ok := open["post-start "+hook]; !ok {
			t.Errorf("post-start hook %s is not in the trace", hook)
		}
	}
	for _, signal := range []string{"MuxAndDiscoveryComplete", "HasBeenReady", "ShutdownInitiated", "InFlightRequestsDrained"} {
		if !seen[signal] {
			t.Errorf("lifecycle signal %s is not in the trace", signal)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		if got := record.Event.(trace.Request).Server; got != server {
			t.Errorf("%s was answered by %s, want %s", path, got, server)
		}
	}
}

func TestUsers(t *testing.T) {
	cp := envtest.Start(t)
	jane := kubernetes.NewForConfigOrDie(cp.AddUser("jane", "developers"))
	_, err := jane.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
		t.Errorf("a user without a role lists secrets: %v", err)
	}
	anonymous := cp.Config()
	anonymous.BearerToken = ""
	_, err = kubernetes.NewForConfigOrDie(anonymous).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("an anonymous user lists namespaces: %v", err)
	}
	stranger := cp.Config()
	stranger.BearerToken = "guess"
	_, err = kubernetes.NewForConfigOrDie(stranger).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("an unknown token gets in: %v", err)
	}
}

// TestListFlags gives a list that has a default, which it replaces.
func TestListFlags(t *testing.T) {
	cp := envtest.Start(t, envtest.WithFlags("--authorization-mode=RBAC,Node"))
	_, err := kubernetes.NewForConfigOrDie(cp.AddUser("jane")).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a user without a role lists secrets: %v", err)
	}
}

// TestFirstPod creates what newcomers create first. With the plugin it needs a service
// account that nobody has made.
func TestFirstPod(t *testing.T) {
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
		"plugin on":            {[]string{"--enable-admission-plugins=NodeRestriction,ServiceAccount"}, true},
		"plugin on, two words": {[]string{"--enable-admission-plugins", "ServiceAccount"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cp := envtest.Start(t, envtest.WithFlags(c.flags...))
			_, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
			if refused := apierrors.IsForbidden(err); refused != c.refuse || err != nil && !refused {
				t.Errorf("create a Pod: %v, want refused %t", err, c.refuse)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	cp := envtest.Start(t, envtest.WithFlags("--runtime-config=apps/v1=false", "--feature-gates=WatchList=false"))
	client := kubernetes.NewForConfigOrDie(cp.Config())
	_, err := client.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("apps/v1 is switched off and served: %v", err)
	}
}
