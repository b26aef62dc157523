package settle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"snowglobe.test/envtest/fault"
)

// An informer whose resource has another name would not be looked at.
func TestResourceOf(t *testing.T) {
	for want, object := range map[string]runtime.Object{
		"pods": &corev1.Pod{},
		//lint:ignore SA1019 the API server still serves it
		"endpoints": &corev1.Endpoints{},
		"flowschemas.flowcontrol.apiserver.k8s.io":       &flowcontrolv1.FlowSchema{},
		"ingressclasses.networking.k8s.io":               &networkingv1.IngressClass{},
		"csistoragecapacities.storage.k8s.io":            &storagev1.CSIStorageCapacity{},
		"customresourcedefinitions.apiextensions.k8s.io": &apiextensionsv1.CustomResourceDefinition{},
		"apiservices.apiregistration.k8s.io":             &apiregistrationv1.APIService{},
	} {
		assert.Equal(t, want, resourceOf(object).String())
	}
}

func TestBehind(t *testing.T) {
	pod := func(name, revision string) runtime.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: revision}}
	}
	cached := []runtime.Object{pod("a", "3"), pod("b", "4")}
	for _, test := range []struct {
		name     string
		informer []runtime.Object
		want     []string
	}{
		{"all", []runtime.Object{pod("a", "3"), pod("b", "4")}, nil},
		{"not one", []runtime.Object{pod("a", "3")}, []string{"an informer has not seen pods default/b at revision 4"}},
		{"not the last of one", []runtime.Object{pod("a", "2"), pod("b", "4")}, []string{"an informer has not seen pods default/a at revision 3"}},
		{"not that one is gone", []runtime.Object{pod("a", "3"), pod("b", "4"), pod("c", "1")}, []string{"an informer has not seen that pods default/c is deleted"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines, err := behind("pods", cached, test.informer)
			require.NoError(t, err)
			assert.Equal(t, test.want, lines)
		})
	}
}

func TestHolds(t *testing.T) {
	for _, test := range []struct {
		op              fault.Operation
		cache, informer bool
	}{
		{fault.Operation{Point: "cache/pods"}, true, false},
		{fault.Operation{Point: "cache/nodes"}, false, false},
		{fault.Operation{Point: "store/watch-event", Resource: "pods"}, true, false},
		{fault.Operation{Point: "store/watch-event", Resource: "nodes"}, false, false},
		{fault.Operation{Point: "store/put", Resource: "pods"}, false, false},
		{fault.Operation{Point: "informer/pods"}, false, true},
		{fault.Operation{Point: "watch/pods"}, false, true},
		{fault.Operation{Point: "http/watch", Resource: "pods"}, false, true},
		{fault.Operation{Point: "http/get", Resource: "pods"}, false, false},
	} {
		assert.Equal(t, test.cache, holdsCache(&test.op, "pods"), test.op)
		assert.Equal(t, test.informer, holdsInformer(&test.op, "pods"), test.op)
	}
}
