package controllerruntime_test

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue" // whose queues these metrics are of
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"snowglobe.test/envtest"
)

// TestQueuesOfControllers has the metrics of the program's queues where controller-runtime tells them,
// as without a server in the process, and those of a server's where servers tell them.
func TestQueuesOfControllers(t *testing.T) {
	envtest.Start(t)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[int](),
		workqueue.TypedRateLimitingQueueConfig[int]{Name: "of-program"})
	queue.Add(1)
	queue.ShutDown()
	const ofServer = "crd_finalizer"
	programs, servers := queuesIn(t, controllermetrics.Registry), queuesIn(t, legacyregistry.DefaultGatherer)
	assert.Contains(t, programs, "of-program")
	assert.NotContains(t, programs, ofServer)
	assert.Contains(t, servers, ofServer)
	assert.NotContains(t, servers, "of-program")
}

// queuesIn returns the names of the queues of which metrics tell.
func queuesIn(t *testing.T, from prometheus.Gatherer) (names []string) {
	families, err := from.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "workqueue_adds_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "name" || label.GetName() == "controller" {
					names = append(names, label.GetValue())
				}
			}
		}
	}
	return slices.Compact(names)
}
