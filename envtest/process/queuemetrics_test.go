package process

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
)

// TestWithoutQueueMetrics looks for the goroutine of a queue that updates its metrics.
func TestWithoutQueueMetrics(t *testing.T) {
	updates := func() (updates bool) {
		synctest.Test(t, func(t *testing.T) {
			queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: t.Name()})
			defer queue.ShutDown()
			synctest.Wait() // until its goroutines wait
			stacks := make([]byte, 1<<20)
			updates = strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "updateUnfinishedWorkLoop")
		})
		return updates
	}
	require.True(t, updates(), "a queue has no metrics to begin with: the test would show nothing")
	giveBack := WithoutQueueMetrics()
	assert.False(t, updates(), "a queue has metrics")
	giveBack()
	assert.True(t, updates(), "a queue has no metrics when they have been given back")
}
