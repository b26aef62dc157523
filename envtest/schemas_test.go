package envtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"

	"snowglobe.test/envtest"
)

// TestSchemasAfterIdle installs a CRD on a server that was idle for a while,
// and so looks for new schemas less often than upstream. They must be found as
// soon as upstream finds them: its aggregator looks every second, its mutating
// policies every five.
func TestSchemasAfterIdle(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ctx := t.Context()
		client := kubernetes.NewForConfigOrDie(cp.Config())
		groups := []string{"example.com", "later.example.com"}
		colourWidgets(ctx, t, client, groups)
		for _, group := range groups {
			time.Sleep(10 * time.Minute)
			crd := widgetCRD()
			crd.Name, crd.Spec.Group = "widgets."+group, group
			require.NoError(t, cp.InstallCRDs(ctx, crd))
			time.Sleep(3 * time.Second)
			paths, err := client.Discovery().OpenAPIV3().Paths()
			require.NoError(t, err)
			_, ok := paths["apis/"+group+"/v1"]
			assert.True(t, ok, "three seconds after a CRD was installed the OpenAPI index lacks %s", group)
			time.Sleep(5 * time.Second)
			createColoured(ctx, t, cp, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"})
		}
	})
}

// colourWidgets has a mutating policy set a label on every widget of the groups.
func colourWidgets(ctx context.Context, t *testing.T, client kubernetes.Interface, groups []string) {
	t.Helper()
	fail := admissionregistrationv1.Fail
	policies := client.AdmissionregistrationV1()
	_, err := policies.MutatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "colour"},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      &fail,
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: groups, APIVersions: []string{"*"}, Resources: []string{"widgets"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{metadata: Object.metadata{labels: {"colour": "blue"}}}`},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = policies.MutatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "colour"},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "colour"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// createColoured creates a widget, which the policy must have coloured.
func createColoured(ctx context.Context, t *testing.T, cp *envtest.ControlPlane, resource schema.GroupVersionResource) {
	t.Helper()
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": "Widget",
		"metadata": map[string]any{"name": "one", "namespace": "default"},
	}}
	created, err := dynamic.NewForConfigOrDie(cp.Config()).Resource(resource).Namespace("default").Create(ctx, widget, metav1.CreateOptions{})
	require.NoError(t, err, "eight seconds after its CRD was installed")
	assert.Equal(t, "blue", created.GetLabels()["colour"], "the policy did not see the widget: labels %v", created.GetLabels())
}

// Servers of a process share their OpenAPI v3 documents, if they serve the same.
func TestSchemasOfConfigurations(t *testing.T) {
	const group = "apis/internal.apiserver.k8s.io/v1alpha1"
	paths := func(opts ...envtest.Option) map[string]openapi.GroupVersion {
		t.Helper()
		var paths map[string]openapi.GroupVersion
		envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
			var err error
			paths, err = kubernetes.NewForConfigOrDie(cp.Config()).Discovery().OpenAPIV3().Paths()
			require.NoError(t, err)
		}, opts...)
		return paths
	}
	plain, more, again := paths(), paths(envtest.WithFlags("--runtime-config="+group[len("apis/"):]+"=true")), paths()
	assert.True(t, plain[group] == nil && more[group] != nil && again[group] == nil, "%s is documented, without and with the flag, and without it again: %t, %t, %t", group, plain[group] != nil, more[group] != nil, again[group] != nil)
	for path, document := range plain {
		assert.True(t, again[path] != nil && again[path].ServerRelativeURL() == document.ServerRelativeURL(), "%s has another document the second time", path)
	}
}
