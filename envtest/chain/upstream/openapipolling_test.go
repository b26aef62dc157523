package upstream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
)

// TestPollingQueue polls a server of the chain every second, as upstream does, and has
// a schema change while the queue is slow.
func TestPollingQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const local, remote = "k8s_internal_local_delegation_chain_0000000000", "v1.example.com"
		polling := NewOpenAPIPolling()
		queue := &pollingQueue{
			TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
			polling:                    polling, period: map[string]time.Duration{},
		}
		defer queue.ShutDown()
		polling.queue = queue
		poll := func(key string) time.Duration {
			began := time.Now()
			queue.AddAfter(key, time.Second)
			got, _ := queue.Get()
			queue.Done(got)
			assert.Equal(t, key, got)
			return time.Since(began)
		}
		assert.Equal(t, time.Second, poll(local), "after the start")
		time.Sleep(schemaSettling)
		assert.Equal(t, idlePoll, poll(local), "idle")
		time.AfterFunc(10*time.Second, polling.SchemasChange)
		assert.Equal(t, 11*time.Second, poll(local), "a schema changes")
		time.Sleep(schemaSettling)
		require.True(t, polling.settled())
		queue.AddAfter(remote, time.Second) // whose schemas may have changed
		assert.False(t, polling.settled())
	})
}

// TestOpenAPIQueue fails when upstream's aggregator has its queue elsewhere.
func TestOpenAPIQueue(t *testing.T) {
	queue, err := openAPIQueue(&aggregatorapiserver.APIAggregator{})
	require.NoError(t, err)
	assert.Nil(t, queue, "an aggregator without OpenAPI has a queue")
	assert.NoError(t, FetchOpenAPI(&aggregatorapiserver.APIAggregator{}))
}

// TestUnexported shows the errors of a future upstream.
func TestUnexported(t *testing.T) {
	type inner struct{ text string }
	type outer struct {
		//lint:ignore U1000 it is read by reflection
		pointer *inner
		inner   inner
	}
	value := &outer{inner: inner{"found"}}
	found, err := unexported[string](value, "inner.text")
	require.NoError(t, err)
	assert.Equal(t, "found", *found)
	found, err = unexported[string](value, "pointer.text")
	require.NoError(t, err)
	assert.Nil(t, found)
	for _, path := range []string{"other", "inner.other", "inner.text.other", "inner"} {
		_, err = unexported[string](value, path)
		assert.ErrorContains(t, err, "upstream changed: ", "%s", path)
	}
}
