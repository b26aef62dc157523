package envtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// TestPolicyParams has tests that share a server, one after the other, bind the same kind of
// policy. Each finds its own params, whose informer upstream ends with the last binding and does
// not start again.
func TestPolicyParams(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		client := kubernetes.NewForConfigOrDie(cp.Config())
		for _, allowed := range []string{"red", "green"} {
			bindColourPolicy(t.Context(), t, client, allowed)
			time.Sleep(3 * time.Second) // upstream looks for policies every second
			settleParams(t, cp)
			for _, colour := range []string{"red", "green"} {
				_, err := createColour(t.Context(), client, "of-"+colour, colour)
				assert.Equal(t, colour == allowed, err == nil, "%s, where %s is allowed: %v", colour, allowed, err)
			}
			require.NoError(t, cp.Reset(t.Context()))
			time.Sleep(3 * time.Second)
			_, err := createColour(t.Context(), client, "after-reset", "blue")
			require.NoError(t, err)
			settleParams(t, cp)
			require.NoError(t, cp.Reset(t.Context()))
		}
	})
}

func settleParams(t *testing.T, cp *envtest.ControlPlane) {
	t.Helper()
	_, err := cp.Settle(t.Context())
	require.NoError(t, err)
}

// bindColourPolicy has a policy allow ConfigMaps of one colour alone, which is its parameter.
func bindColourPolicy(ctx context.Context, t *testing.T, client kubernetes.Interface, allowed string) {
	t.Helper()
	_, err := createColour(ctx, client, "params", allowed)
	require.NoError(t, err)
	policies := client.AdmissionregistrationV1()
	_, err = policies.ValidatingAdmissionPolicies().Create(ctx, &registrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "colour"},
		Spec: registrationv1.ValidatingAdmissionPolicySpec{
			ParamKind: &registrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &registrationv1.MatchResources{
				ResourceRules: []registrationv1.NamedRuleWithOperations{{RuleWithOperations: registrationv1.RuleWithOperations{
					Operations: []registrationv1.OperationType{registrationv1.Create},
					Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Validations: []registrationv1.Validation{{Expression: "object.data.colour == params.data.colour"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	deny := registrationv1.DenyAction
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(ctx, &registrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "colour"},
		Spec: registrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        "colour",
			ParamRef:          &registrationv1.ParamRef{Name: "params", Namespace: metav1.NamespaceDefault, ParameterNotFoundAction: &deny},
			ValidationActions: []registrationv1.ValidationAction{registrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func createColour(ctx context.Context, client kubernetes.Interface, name, colour string) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"colour": colour}}
	return client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{})
}
