package envtest

import (
	"context"
	"net/http"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	upstream "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	globe "snowglobe.test/envtest/client"
	"snowglobe.test/envtest/client/internal/program"
	"snowglobe.test/envtest/client/internal/quick"
)

func TestMain(m *testing.M) { os.Exit(quick.Run(m)) }

// TestEnvironmentFields finds every field of controller-runtime's Environment, with its
// type, and every method with its signature.
func TestEnvironmentFields(t *testing.T) {
	ours, theirs := reflect.TypeFor[Environment](), reflect.TypeFor[upstream.Environment]()
	for i := range theirs.NumField() {
		want := theirs.Field(i)
		if !want.IsExported() {
			continue
		}
		got, ok := ours.FieldByName(want.Name)
		assert.True(t, ok && got.Type == want.Type, "field %s %s", want.Name, want.Type)
	}
	ours, theirs = reflect.PointerTo(ours), reflect.PointerTo(theirs)
	for i := range theirs.NumMethod() {
		want := theirs.Method(i)
		got, ok := ours.MethodByName(want.Name)
		if assert.True(t, ok, "method %s", want.Name) {
			assert.Equal(t, signature(want.Type), signature(got.Type), want.Name)
		}
	}
}

// signature is a method's, without its receiver.
func signature(method reflect.Type) (types []reflect.Type) {
	for i := 1; i < method.NumIn(); i++ {
		types = append(types, method.In(i))
	}
	for i := range method.NumOut() {
		types = append(types, method.Out(i))
	}
	return types
}

// TestEnvironment is a suite as kubebuilder scaffolds it: definitions, webhooks on a socket, a
// manager.
func TestEnvironment(t *testing.T) {
	t.Setenv(program.Env, quick.Program)
	environment := &Environment{
		CRDDirectoryPaths:     []string{"testdata/flakes.yaml"},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: WebhookInstallOptions{Paths: []string{"testdata/webhooks.yaml"}},
	}
	environment.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "AlwaysPullImages")
	config := start(t, environment)
	hooks := environment.WebhookInstallOptions
	mgr, err := manager.New(config, manager.Options{
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir}),
	})
	require.NoError(t, err)
	mgr.GetWebhookServer().Register("/cold", &webhook.Admission{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Errored(http.StatusTeapot, assert.AnError)
	})})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()
	require.Eventually(t, func() bool { return mgr.GetWebhookServer().StartedChecker()(nil) == nil }, time.Minute, 10*time.Millisecond)

	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	flake := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Flake", "metadata": map[string]any{"name": "a", "namespace": "default"},
	}}
	assert.ErrorContains(t, c.Create(ctx, flake), assert.AnError.Error(), "the webhook")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	require.NoError(t, c.Create(ctx, pod))
	assert.Equal(t, corev1.PullAlways, pod.Spec.Containers[0].ImagePullPolicy, "the flag of Configure")
}

func start(t *testing.T, environment *Environment) *rest.Config {
	t.Helper()
	config, err := environment.Start()
	t.Cleanup(func() { assert.NoError(t, environment.Stop()) })
	require.NoError(t, err)
	return config
}

// TestEnvironmentUsers adds a user with no rights, by configuration and by kubeconfig.
func TestEnvironmentUsers(t *testing.T) {
	t.Setenv(program.Env, quick.Program)
	t.Setenv("TMPDIR", t.TempDir())
	environment := &Environment{}
	config, err := environment.Start()
	require.NoError(t, err)
	assert.Equal(t, float32(1000), config.QPS)
	reader, err := environment.AddUser(User{Name: "reader", Groups: []string{"none"}}, nil)
	require.NoError(t, err)
	kubeconfig, err := reader.KubeConfig()
	require.NoError(t, err)
	for name, kubeconfig := range map[string][]byte{"reader": kubeconfig, "admin": environment.KubeConfig} {
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		require.NoError(t, err)
		assert.Equal(t, name == "reader", apierrors.IsForbidden(listNodes(t, config)), name)
	}
	assert.True(t, apierrors.IsForbidden(listNodes(t, rest.AnonymousClientConfig(config))), "without a certificate")
	kubectl, err := reader.Kubectl()
	require.NoError(t, err)
	assert.NotEmpty(t, kubectl.Opts)
	require.NoError(t, environment.Stop())
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	assert.Empty(t, left)
}

func listNodes(t *testing.T, config *rest.Config) error {
	t.Helper()
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c.List(t.Context(), &corev1.NodeList{})
}

// TestEnvironmentAgain starts one again, and finds it empty.
func TestEnvironmentAgain(t *testing.T) {
	t.Setenv(program.Env, quick.Program)
	for _, options := range [][]globe.Option{nil, {globe.WithFaults("fail http/create resource=namespaces name=cursed with=503 optional")}} {
		environment := &Environment{Options: options}
		for range 2 {
			config, err := environment.Start()
			require.NoError(t, err)
			_, err = environment.Start()
			assert.ErrorContains(t, err, "started already")
			c, err := client.New(config, client.Options{})
			require.NoError(t, err)
			require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "once"}}))
			err = c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cursed"}})
			assert.Equal(t, options != nil, apierrors.IsServiceUnavailable(err), "%v", err)
			assert.NotNil(t, environment.Snowglobe())
			require.NoError(t, environment.Stop())
			require.NoError(t, environment.Stop(), "twice")
		}
	}
}

// TestEnvironmentRefuses names every field that can't be honoured, at once.
func TestEnvironmentRefuses(t *testing.T) {
	t.Setenv(program.Env, quick.Program)
	t.Setenv("KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT", "soon")
	environment := &Environment{}
	environment.ControlPlane.GetAPIServer().Path = "kube-apiserver"
	environment.ControlPlane.GetAPIServer().Port = "http"
	environment.ControlPlane.Etcd = &Etcd{}
	environment.ControlPlane.Etcd.Configure().Append("quota-backend-bytes", "1")
	_, err := environment.Start()
	for _, want := range []string{
		"ControlPlane.APIServer.Path can't be honoured",
		"ControlPlane.Etcd's flags can't be honoured",
		`SecureServing.Port "http" is not a port`,
		`KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT="soon"`,
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.NoError(t, environment.Stop())

	t.Setenv("KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT", "")
	_, err = (&Environment{DownloadBinaryAssetsVersion: "1.30.0"}).Start()
	assert.ErrorContains(t, err, "DownloadBinaryAssetsVersion 1.30.0 can't be honoured: this is kube-apiserver v1.")
	for want, change := range map[string]func(*Arguments){
		"--etcd-servers can't be honoured":                         func(args *Arguments) { args.Append("etcd-servers", "http://127.0.0.1:2379") },
		`invalid argument "perhaps" for "--allow-privileged" flag`: func(args *Arguments) { args.Set("allow-privileged", "perhaps") },
	} {
		refused := &Environment{}
		change(refused.ControlPlane.GetAPIServer().Configure())
		_, err := refused.Start()
		assert.ErrorContains(t, err, want)
		assert.NoError(t, refused.Stop())
	}
}
