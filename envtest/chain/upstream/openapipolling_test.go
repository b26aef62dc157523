package upstream

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
)

// TestOpenAPIQueue fails when upstream's aggregator has its queue elsewhere.
func TestOpenAPIQueue(t *testing.T) {
	queue, err := openAPIQueue(&aggregatorapiserver.APIAggregator{})
	require.NoError(t, err)
	assert.Nil(t, queue, "an aggregator without OpenAPI has a queue")
}

// TestUnexported shows the errors of a future upstream.
func TestUnexported(t *testing.T) {
	type inner struct{ text string }
	type outer struct {
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
