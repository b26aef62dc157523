package client

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/envtest/client/internal/program"
	"snowglobe.test/envtest/client/internal/quick"
)

// alone gives the test a cache folder of its own, and so a server of its own.
func alone(t *testing.T) {
	t.Helper()
	cache, err := os.MkdirTemp("", "sg") // a short path, as it holds a socket
	require.NoError(t, err)
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache) // of other systems
	t.Setenv(program.Env, quick.Program)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return len(sockets(t, cache)) == 0 }, time.Minute, quick.Linger/10, "the server ends with its last test")
		assert.NoError(t, os.RemoveAll(cache))
	})
}

func sockets(t *testing.T, cache string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cache, "*", "snowglobe", "serve", "*.sock"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(cache, "snowglobe", "serve", "*.sock"))
	require.NoError(t, err)
	return append(found, more...)
}

func create(t *testing.T, config *rest.Config, name string) error {
	t.Helper()
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").
		Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// TestNextTestIsAlone uses the control plane of an ended test: it is the same server,
// and nothing is left of what that test did.
func TestNextTestIsAlone(t *testing.T) {
	alone(t)
	var hosts []string
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			cp := Start(t)
			hosts = append(hosts, cp.Config().Host)
			assert.NotEmpty(t, cp.Release())
			require.NoError(t, create(t, cp.Config(), "a"))
			require.True(t, apierrors.IsAlreadyExists(create(t, cp.Config(), "a")))
			require.NoError(t, cp.Reset(t.Context()))
			require.NoError(t, create(t, cp.Config(), "a"))
		})
	}
	assert.Equal(t, hosts[0], hosts[1])
}

// TestSideBySide has several tests at a time: each has its own control plane, and one
// server runs all of them.
func TestSideBySide(t *testing.T) {
	alone(t)
	var group sync.WaitGroup
	errs := make([]error, 3)
	planes := make([]*ControlPlane, len(errs))
	for i := range errs {
		group.Add(1)
		go func() {
			defer group.Done()
			if planes[i], errs[i] = Launch(t.Context()); errs[i] == nil {
				errs[i] = create(t, planes[i].Config(), "a")
			}
		}()
	}
	group.Wait()
	for i := range errs {
		require.NoError(t, errs[i])
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	assert.Len(t, sockets(t, filepath.Dir(cache)), 1)
	for _, cp := range planes {
		assert.NoError(t, cp.Stop(t.Context()))
		assert.NoError(t, cp.Stop(t.Context()), "again")
	}
}

// TestOptions starts what options ask for.
func TestOptions(t *testing.T) {
	alone(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "widgets.yaml"), []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`), 0o600))
	cp := Start(t, WithCRDPaths(dir), WithCRDs(gadgets()), WithFlags("--event-ttl=10m"), WithSeed(7),
		WithFaults("fail http/create resource=configmaps name=default/a with=503 times=1"))
	raw := kubernetes.NewForConfigOrDie(cp.Config()).RESTClient()
	for _, path := range []string{"/apis/example.com/v1/widgets", "/apis/example.com/v1/gadgets"} {
		assert.NoError(t, raw.Get().AbsPath(path).Do(t.Context()).Error(), path)
	}
	assert.True(t, apierrors.IsServiceUnavailable(create(t, cp.Config(), "a")))
	rule, err := cp.Inject(t.Context(), "fail http/create resource=configmaps name=default/a with=500")
	require.NoError(t, err)
	for range 2 {
		assert.True(t, apierrors.IsInternalError(create(t, cp.Config(), "a")))
	}
	fired, err := rule.Fired(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, fired)
	require.NoError(t, rule.Remove(t.Context()))
	jane, err := cp.AddUser(t.Context(), "jane")
	require.NoError(t, err)
	assert.True(t, apierrors.IsForbidden(create(t, jane, "a")))
	log, err := cp.Log(t.Context())
	require.NoError(t, err)
	assert.Contains(t, log, "apiserver")
	kubeconfig, err := cp.Kubeconfig()
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	assert.NoError(t, create(t, config, "a"))
}

func gadgets() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
}

// TestErrors says what is wrong, in the words of whoever has found it.
func TestErrors(t *testing.T) {
	alone(t)
	for want, opts := range map[string][]Option{
		"unknown flag: --snow":     {WithFlags("--snow")},
		"/nowhere: no such file":   {WithCRDPaths("/nowhere")},
		`unknown action "befall"`:  {WithFaults("befall store")},
		"not within 1s, the limit": {WithFaults("delay hook/crd-informer-synced verb=post-start by=5m"), WithTimeouts(time.Second, 0)},
	} {
		_, err := Launch(t.Context(), opts...)
		assert.ErrorContains(t, err, want)
	}
	cp, err := Launch(t.Context(), WithFaults("fail http/create resource=secrets with=500 times=1"))
	require.NoError(t, err)
	assert.ErrorContains(t, cp.Stop(t.Context()), "never fired")
	_, err = cp.AddUser(t.Context(), "jane")
	assert.Error(t, err)

	t.Setenv(program.SocketEnv, filepath.Join(t.TempDir(), "none"))
	_, err = Launch(t.Context())
	assert.ErrorContains(t, err, "snowglobe serve --socket")
	t.Setenv(program.SocketEnv, "globe.sock")
	_, err = Launch(t.Context())
	assert.ErrorContains(t, err, "not an absolute path")
}

// TestNoWay names a way out where no server can be started.
func TestNoWay(t *testing.T) {
	alone(t)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), strings.Repeat("deep", 30)))
	_, err := Launch(t.Context())
	assert.ErrorContains(t, err, "give XDG_CACHE_HOME a shorter folder, or start a server (snowglobe serve --socket FILE) and set SNOWGLOBE_SOCKET")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", "")
	t.Setenv(program.Env, "")
	_, err = Launch(t.Context())
	assert.ErrorContains(t, err, "executable file not found in $PATH\n"+
		"Set SNOWGLOBE to a snowglobe that was built elsewhere, or start a server")
}

// TestProgramFails shows what the program said.
func TestProgramFails(t *testing.T) {
	alone(t)
	script := filepath.Join(t.TempDir(), "snowglobe")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho it snows >&2; exit 3\n"), 0o700))
	t.Setenv(program.Env, script)
	_, err := Launch(t.Context())
	assert.ErrorContains(t, err, "it snows")
}

// TestServerDies lets the next test start another server.
func TestServerDies(t *testing.T) {
	alone(t)
	cp, err := Launch(t.Context())
	require.NoError(t, err)
	require.NoError(t, cp.calls.Close())
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	left := filepath.Join(cache, "snowglobe", "serve")
	found := sockets(t, filepath.Dir(cache))
	require.Len(t, found, 1)
	require.Eventually(t, func() bool { return len(sockets(t, filepath.Dir(cache))) == 0 }, time.Minute, quick.Linger/10)
	// What a server leaves that is killed.
	require.NoError(t, os.WriteFile(filepath.Join(left, filepath.Base(found[0])), nil, 0o600))
	cp, err = Launch(t.Context())
	require.NoError(t, err)
	assert.NoError(t, cp.Stop(t.Context()))
}
