package upstream

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
)

// endedController wants to be run when all is over.
type endedController struct{ runs int }

func (*endedController) AddAPIService(*apiregistrationv1.APIService, http.Handler) {}
func (*endedController) RemoveAPIService(string)                                   {}
func (c *endedController) Run(stop <-chan struct{}, _ chan<- struct{}) {
	<-stop
	c.runs++
}

// TestDiscoveryController fails when upstream's aggregator has it elsewhere.
func TestDiscoveryController(t *testing.T) {
	aggregator := &aggregatorapiserver.APIAggregator{}
	require.NoError(t, ShutDownDiscovery(aggregator), "an aggregator without the controller")
	place, err := unexported[aggregatorapiserver.DiscoveryAggregationController](aggregator, "discoveryAggregationController")
	require.NoError(t, err)
	controller := &endedController{}
	*place = controller
	require.NoError(t, ShutDownDiscovery(aggregator))
	assert.Equal(t, 1, controller.runs)
}
