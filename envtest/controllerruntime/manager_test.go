package controllerruntime_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllerruntime"
)

// newScheme knows the flakes of flakes_test.go.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for version, kind := range map[string]runtime.Object{"v1": &FlakeV1{}, "v2": &FlakeV2{}} {
		gv := schema.GroupVersion{Group: "snow.example.com", Version: version}
		scheme.AddKnownTypeWithName(gv.WithKind("Flake"), kind)
		metav1.AddToGroupVersion(scheme, gv)
	}
	return scheme
}

// flakeWebhooks are a manager's: arms default to six, and can't be seven.
type flakeWebhooks struct{}

func (flakeWebhooks) Default(_ context.Context, flake *FlakeV2) error {
	if flake.Spec.Arms == 0 {
		flake.Spec.Arms = 6
	}
	return nil
}

func (flakeWebhooks) ValidateCreate(_ context.Context, flake *FlakeV2) (admission.Warnings, error) {
	if flake.Spec.Arms == 7 {
		return nil, errors.New("no flake has seven arms")
	}
	return nil, nil
}

func (w flakeWebhooks) ValidateUpdate(ctx context.Context, _, flake *FlakeV2) (admission.Warnings, error) {
	return w.ValidateCreate(ctx, flake)
}

func (flakeWebhooks) ValidateDelete(context.Context, *FlakeV2) (admission.Warnings, error) {
	return nil, nil
}

var (
	_ conversion.Hub         = &FlakeV2{}
	_ conversion.Convertible = &FlakeV1{}
)

// TestWebhookServer has a manager with all three kinds of webhooks, in virtual time: a
// defaulting and a validating one, and the conversion of a hub.
func TestWebhookServer(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		scheme := newScheme()
		server, err := controllerruntime.NewWebhookServer(cp)
		require.NoError(t, err)
		mgr, err := manager.New(cp.Config(), manager.Options{
			Scheme: scheme, WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"},
		})
		require.NoError(t, err)
		require.NoError(t, builder.WebhookManagedBy(mgr, &FlakeV2{}).WithDefaulter(flakeWebhooks{}).WithValidator(flakeWebhooks{}).Complete())
		require.Error(t, server.StartedChecker()(nil))

		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- mgr.Start(ctx) }()
		<-mgr.Elected()
		defer func() {
			cancel()
			require.NoError(t, <-ended)
		}()
		_, err = server.InstallCRDs(crenvtest.CRDInstallOptions{Scheme: scheme, CRDs: []*apiextensionsv1.CustomResourceDefinition{flakes()}})
		require.NoError(t, err)
		folder := webhookFolder(t)
		require.NoError(t, server.Install(folder)) // a file, or a folder such as config/webhook
		_, err = cp.Settle(ctx)
		require.NoError(t, err)
		require.NoError(t, server.StartedChecker()(nil))

		c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
		require.NoError(t, err)
		flake := &FlakeV2{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
		require.NoError(t, c.Create(ctx, flake))
		assert.Equal(t, 6, flake.Spec.Arms)
		old := &FlakeV1{}
		require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(flake), old))
		assert.Equal(t, "six", old.Spec.Shape)

		odd := &FlakeV2{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}, Spec: FlakeSpecV2{Arms: 7}}
		assert.ErrorContains(t, c.Create(ctx, odd), "no flake has seven arms")
	})
}

// webhookFolder is kubebuilder's config/webhook.
func webhookFolder(t *testing.T) string {
	t.Helper()
	manifests, err := os.ReadFile("testdata/webhooks.yaml")
	require.NoError(t, err)
	folder := t.TempDir()
	for name, content := range map[string]string{
		"manifests.yaml":       string(manifests),
		"kustomization.yaml":   "resources:\n- manifests.yaml\n- service.yaml\nconfigurations:\n- kustomizeconfig.yaml\n",
		"kustomizeconfig.yaml": "nameReference:\n- kind: Service\n  version: v1\n",
		"service.yaml":         "apiVersion: v1\nkind: Service\nmetadata:\n  name: webhook-service\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	return folder
}

// TestManagerOfSeveralKinds starts caches of three kinds at once, each of which asks for
// its REST mapping under a mutex that the others want.
func TestManagerOfSeveralKinds(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		mgr, err := manager.New(cp.Config(), manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
		require.NoError(t, err)
		seen := make(chan string, 1)
		reconciler := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			seen <- req.Name
			return reconcile.Result{}, mgr.GetClient().List(ctx, &corev1.ServiceList{})
		})
		require.NoError(t, builder.ControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ServiceAccount{}).Owns(&corev1.Pod{}).Complete(reconciler))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		direct, err := client.New(cp.Config(), client.Options{})
		require.NoError(t, err)
		require.NoError(t, direct.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}))
		assert.Equal(t, "a", <-seen)
		stop()
		assert.NoError(t, <-ended)
	})
}
