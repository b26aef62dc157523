package controllerruntime_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	snowglobe "snowglobe.test/envtest"
)

// TestRequestsOfClients wants controller-runtime's metrics to count what clients ask, and not the
// hundreds of requests that the API server makes to itself.
func TestRequestsOfClients(t *testing.T) {
	before := requestsTotal(t)
	cp := snowglobe.Start(t)
	assert.Equal(t, before, requestsTotal(t))
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}))
	found := requestsTotal(t)
	assert.Positive(t, found-before)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}))
	assert.Equal(t, found+1, requestsTotal(t))
}

func requestsTotal(t *testing.T) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "rest_client_requests_total" {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}
