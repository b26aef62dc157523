package upstream

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestBeginPolicies begins a source whose informers have synced and found no policy, and no other.
func TestBeginPolicies(t *testing.T) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for name, test := range map[string]struct {
		objects       []runtime.Object
		synced, begun bool
	}{
		"not synced":  {},
		"none":        {synced: true, begun: true},
		"with policy": {objects: []runtime.Object{policy}, synced: true},
	} {
		t.Run(name, func(t *testing.T) {
			factory := informers.NewSharedInformerFactory(fake.NewClientset(test.objects...), 0)
			registration := factory.Admissionregistration().V1()
			source := generic.NewPolicySource[*validating.Policy, *validating.PolicyBinding, validating.Validator](
				registration.ValidatingAdmissionPolicies().Informer(), registration.ValidatingAdmissionPolicyBindings().Informer(),
				nil, nil, nil, factory, nil, nil)
			if test.synced {
				factory.StartWithContext(t.Context())
				require.NoError(t, factory.WaitForCacheSyncWithContext(t.Context()).Err)
			}
			var caches TimedCaches
			caches.Add("a", source)
			caches.Find()
			require.Len(t, caches.sources, 1, "upstream changed: a source of policies is a %T", source)
			require.False(t, source.HasSynced())
			caches.BeginPolicies()
			assert.Equal(t, test.begun, source.HasSynced())
		})
	}
}
