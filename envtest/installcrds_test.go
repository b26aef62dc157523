package envtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/internal/sample"
)

// TestInstallCRDs replaces a definition again and again. When InstallCRDs returns, each server
// answers by the new one: its versions, its defaults, its short names in discovery.
func TestInstallCRDs(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		replaceCRD(t.Context(), t, envtest.Start(t, envtest.WithReplicas(2)), replacements(500))
	})
	t.Run("embedded", func(t *testing.T) {
		sample.Long(t)
		replaceCRD(t.Context(), t, envtest.Start(t, envtest.WithStore(embedded.New(embedded.Config{}))), replacements(100))
	})
	t.Run("virtual", func(t *testing.T) {
		envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) { replaceCRD(t.Context(), t, cp, replacements(500)) })
	})
}

// replacements is how often a definition is replaced: all times with -all.
func replacements(all int) int {
	if sample.All() {
		return all
	}
	return 10
}

func replaceCRD(ctx context.Context, t *testing.T, cp *envtest.ControlPlane, times int) {
	t.Helper()
	require.NoError(t, cp.InstallCRDs(ctx, widgetCRD()))
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"}}}
	_, err := dynamic.NewForConfigOrDie(cp.Config()).Resource(widgets).Namespace("default").Create(ctx, widget, metav1.CreateOptions{})
	require.NoError(t, err)
	for n := 2; n < 2+times; n++ {
		crd := generation(n)
		require.NoError(t, cp.InstallCRDs(ctx, crd), "generation %d", n)
		resource := widgets.GroupResource().WithVersion(fmt.Sprintf("v%d", n))
		for _, server := range cp.Servers() {
			got, err := dynamic.NewForConfigOrDie(server.Config()).Resource(resource).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
			require.NoError(t, err, "%s does not serve generation %d", server.Name(), n)
			assert.Equal(t, resource.Version, got.Object["made"], "%s: the default of another generation", server.Name())
			_, found, _, err := discovery.NewDiscoveryClientForConfigOrDie(server.Config()).GroupsAndMaybeResourcesWithContext(ctx)
			require.NoError(t, err)
			assert.Nil(t, found[widgets.GroupVersion()], "%s: discovery tells of a version that is not served", server.Name())
			resources := found[resource.GroupVersion()]
			require.NotNil(t, resources, "%s: generation %d is not in discovery", server.Name(), n)
			assert.Equal(t, crd.Spec.Names.ShortNames, resources.APIResources[0].ShortNames)
		}
	}
}

// generation is a definition that serves a version of its own, beside one that is only stored.
// It comes from another cluster.
func generation(n int) *apiextensionsv1.CustomResourceDefinition {
	crd := widgetCRD()
	crd.UID, crd.ResourceVersion = "1f1c5c1a-0c9e-4b8f-9a4e-6d1e0f1f1f1f", "7"
	crd.Spec.Names.ShortNames = []string{fmt.Sprintf("w%d", n)}
	stored := &crd.Spec.Versions[0]
	stored.Served = false
	stored.Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{
		"made": {Type: "string", Default: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `"v%d"`, n)}},
	}
	served := stored.DeepCopy()
	served.Name, served.Served, served.Storage = fmt.Sprintf("v%d", n), true, false
	crd.Spec.Versions = append(crd.Spec.Versions, *served)
	return crd
}
