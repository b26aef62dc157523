package controllerruntime_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	snowglobe "snowglobe.test/envtest"
	"snowglobe.test/envtest/controllerruntime/envtest"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/internal/home"
	"snowglobe.test/internal/sample"
)

// TestMain keeps out of HOME: upstream's envtest leaves a file there for each port.
func TestMain(m *testing.M) { os.Exit(home.Tests{M: m}.Run()) }

// TestEnvironmentFields finds every field of controller-runtime's Environment, with its
// type, and every method with its signature.
func TestEnvironmentFields(t *testing.T) {
	ours, theirs := reflect.TypeFor[envtest.Environment](), reflect.TypeFor[crenvtest.Environment]()
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

// TestEnvironment is a suite as kubebuilder scaffolds it: definitions with a conversion,
// webhooks on a socket, a manager.
func TestEnvironment(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	scheme := newScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	environment := &envtest.Environment{
		Scheme:                scheme,
		CRDs:                  []*apiextensionsv1.CustomResourceDefinition{flakes()},
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"testdata/webhooks.yaml"}},
		BinaryAssetsDirectory: filepath.Join("..", "bin"),
	}
	environment.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "AlwaysPullImages")
	config, err := environment.Start()
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, environment.Stop())
		left, err := os.ReadDir(os.TempDir())
		assert.NoError(t, err)
		assert.Empty(t, left)
	})

	hooks := environment.WebhookInstallOptions
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir}),
	})
	require.NoError(t, err)
	require.NoError(t, builder.WebhookManagedBy(mgr, &FlakeV2{}).WithDefaulter(flakeWebhooks{}).WithValidator(flakeWebhooks{}).Complete())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()
	require.Eventually(t, func() bool { return mgr.GetWebhookServer().StartedChecker()(nil) == nil }, time.Minute, 10*time.Millisecond)

	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	flake := &FlakeV2{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	require.NoError(t, c.Create(ctx, flake))
	old := &FlakeV1{}
	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(flake), old))
	assert.Equal(t, "six", old.Spec.Shape)

	pod := newPod()
	require.NoError(t, c.Create(ctx, pod))
	assert.Equal(t, corev1.PullAlways, pod.Spec.Containers[0].ImagePullPolicy, "the flag of Configure")
}

func newPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// TestEnvironmentArguments changes default arguments of controller-runtime's, as a server sees it;
// package arguments compares them one by one.
func TestEnvironmentArguments(t *testing.T) {
	environment := &envtest.Environment{}
	environment.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins").Set("service-account-issuer", "https://issuer.example")
	config, err := environment.Start()
	require.NoError(t, err)
	defer func() { assert.NoError(t, environment.Stop()) }()
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	pod := newPod()
	err = c.Create(t.Context(), pod)
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}}
	require.NoError(t, c.Create(t.Context(), account))
	token := &authenticationv1.TokenRequest{}
	require.NoError(t, c.SubResource("token").Create(t.Context(), account, token))
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(token.Status.Token, ".")[1])
	require.NoError(t, err)
	assert.Contains(t, string(claims), `"iss":"https://issuer.example"`)
	assert.NoError(t, c.Create(t.Context(), pod))

	for _, test := range []struct {
		change func(args *envtest.Arguments)
		want   string
	}{
		{func(args *envtest.Arguments) { args.Disable("etcd-servers") }, "--etcd-servers must be specified"},
		{func(args *envtest.Arguments) { args.Append("etcd-servers", "http://127.0.0.1:2379") }, "--etcd-servers can't be honoured"},
		{func(args *envtest.Arguments) { args.Disable("service-account-issuer") }, "service-account-issuer is a required flag"},
		{func(args *envtest.Arguments) { args.Set("allow-privileged", "perhaps") }, `invalid argument "perhaps" for "--allow-privileged" flag`},
	} {
		refused := &envtest.Environment{}
		test.change(refused.ControlPlane.GetAPIServer().Configure())
		_, err := refused.Start()
		assert.ErrorContains(t, err, test.want)
		assert.NoError(t, refused.Stop())
	}
}

// TestEnvironmentUsers adds a user with no rights, by configuration and by kubeconfig.
func TestEnvironmentUsers(t *testing.T) {
	environment := &envtest.Environment{}
	config, err := environment.Start()
	require.NoError(t, err)
	defer func() { assert.NoError(t, environment.Stop()) }()
	assert.Equal(t, float32(1000), config.QPS)

	reader, err := environment.AddUser(envtest.User{Name: "reader", Groups: []string{"none"}}, nil)
	require.NoError(t, err)
	kubeconfig, err := reader.KubeConfig()
	require.NoError(t, err)
	for name, kubeconfig := range map[string][]byte{"reader": kubeconfig, "admin": environment.KubeConfig} {
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		require.NoError(t, err)
		assert.Equal(t, name == "reader", apierrors.IsForbidden(listNodes(t, config)), name)
	}
	assert.True(t, apierrors.IsForbidden(listNodes(t, reader.Config())))
	assert.True(t, apierrors.IsForbidden(listNodes(t, rest.AnonymousClientConfig(config))), "without a certificate")

	kubectl, err := reader.Kubectl()
	require.NoError(t, err)
	assert.NotEmpty(t, kubectl.Opts)
}

func listNodes(t *testing.T, config *rest.Config) error {
	t.Helper()
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c.List(t.Context(), &corev1.NodeList{})
}

// TestEnvironmentAgain starts one again, and finds it empty; and another on it, as on an
// existing cluster.
func TestEnvironmentAgain(t *testing.T) {
	environment := &envtest.Environment{Options: []snowglobe.Option{snowglobe.WithFaults("fail http/create resource=namespaces name=cursed with=503 optional")}}
	for range 2 {
		config, err := environment.Start()
		require.NoError(t, err)
		_, err = environment.Start()
		assert.ErrorContains(t, err, "started already")
		c, err := client.New(config, client.Options{})
		require.NoError(t, err)
		require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "once"}}))
		assert.Error(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cursed"}}))
		assert.NotNil(t, environment.Snowglobe())

		existing := true
		second := &envtest.Environment{
			UseExistingCluster: &existing, Config: config, CRDs: []*apiextensionsv1.CustomResourceDefinition{flakes()},
			CRDInstallOptions: envtest.CRDInstallOptions{CleanUpAfterUse: true},
		}
		_, err = second.Start()
		require.NoError(t, err)
		assert.Nil(t, second.Snowglobe())
		require.NoError(t, second.Stop())
		require.NoError(t, environment.Stop())
		require.NoError(t, environment.Stop(), "twice")
	}
}

// TestUseExistingCluster has USE_EXISTING_CLUSTER mean what it means to controller-runtime's own
// environment: no suite goes to the cluster of its user because of another word. Neither can start
// anything here, which takes each a second: one word of five is tried, or with -all each.
func TestUseExistingCluster(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	for i, value := range []string{"true", "", "True", "TRUE", "1", "T", "t", "yes", " true", "false", "0"} {
		if !sample.Has(i, 5) {
			continue
		}
		t.Setenv("USE_EXISTING_CLUSTER", value)
		nobody := &rest.Config{Host: "https://127.0.0.1:1"}
		_, theirs := (&crenvtest.Environment{Config: nobody}).Start()
		_, ours := (&envtest.Environment{Config: nobody, DownloadBinaryAssetsVersion: "1.30.0"}).Start()
		assert.Equal(t, theirs == nil, ours == nil, "%q: theirs says %v, ours %v", value, theirs, ours)
	}
}

// TestEnvironmentRefuses names every field that can't be honoured, at once.
func TestEnvironmentRefuses(t *testing.T) {
	t.Setenv("KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT", "soon")
	environment := &envtest.Environment{DownloadBinaryAssets: true, DownloadBinaryAssetsVersion: "1.30.0"}
	environment.ControlPlane.GetAPIServer().Path = "kube-apiserver"
	environment.ControlPlane.GetAPIServer().Port = "http"
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	environment.ControlPlane.Etcd.Configure().Append("quota-backend-bytes", "1")
	_, err := environment.Start()
	for _, want := range []string{
		"DownloadBinaryAssetsVersion 1.30.0 can't be honoured: kube-apiserver " + linked.Release() + " is linked",
		"ControlPlane.APIServer.Path can't be honoured",
		"ControlPlane.Etcd's flags can't be honoured",
		`SecureServing.Port "http" is not a port`,
		`KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT="soon"`,
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.NoError(t, environment.Stop())
}
