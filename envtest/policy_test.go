package envtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// TestPolicyAtOnce has a mutating policy merge into objects as soon as the server knows of
// it. For that it needs the object's schema, which it asks the server for while that boots,
// and then every five seconds.
func TestPolicyAtOnce(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ctx, client := context.Background(), kubernetes.NewForConfigOrDie(cp.Config())
		policies := client.AdmissionregistrationV1()
		_, err := policies.MutatingAdmissionPolicies().Create(ctx, labelSnow(), metav1.CreateOptions{})
		require.NoError(t, err)
		binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "snow"}}
		binding.Spec.PolicyName = "snow"
		_, err = policies.MutatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
		require.NoError(t, err)
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			configMap, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{})
			if err == nil && configMap.Labels["snow"] == "falls" {
				break
			}
			require.LessOrEqual(t, time.Since(began), 3*time.Second, "the policy does not merge: %v, %v", configMap, err)
		}
	})
}

// labelSnow is a policy that adds a label to each ConfigMap.
func labelSnow() *admissionregistrationv1.MutatingAdmissionPolicy {
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "snow"}}
	policy.Spec.FailurePolicy = &fail
	policy.Spec.ReinvocationPolicy = "Never"
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
	policy.Spec.Mutations = []admissionregistrationv1.Mutation{{
		PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{metadata: Object.metadata{labels: {"snow": "falls"}}}`},
	}}
	return policy
}
