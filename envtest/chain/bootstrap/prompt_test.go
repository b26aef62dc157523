package bootstrap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust"
)

// TestEnsureServiceCIDR creates what is missing, and leaves alone what is there.
func TestEnsureServiceCIDR(t *testing.T) {
	client := fake.NewClientset().NetworkingV1().ServiceCIDRs()
	require.NoError(t, ensureServiceCIDR(t.Context(), client, []string{"10.0.0.0/24", "fd00::/112"}))
	require.NoError(t, ensureServiceCIDR(t.Context(), client, []string{"10.1.0.0/24"}))
	list, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.0.0.0/24", "fd00::/112"}}, list.Items[0].Spec)
}

// TestWriteAuthenticationInfo creates the namespace too, and replaces nothing.
func TestWriteAuthenticationInfo(t *testing.T) {
	client := fake.NewClientset().CoreV1()
	info := clusterauthenticationtrust.ClusterAuthenticationInfo{}
	require.NoError(t, writeAuthenticationInfo(t.Context(), client, info))
	_, err := client.Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	assert.NoError(t, err)
	assert.True(t, apierrors.IsAlreadyExists(writeAuthenticationInfo(t.Context(), client, info)))
}
