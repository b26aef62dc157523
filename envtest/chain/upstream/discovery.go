package upstream

// Works around APIAggregator.discoveryAggregationController (k8s.io/
// kube-aggregator/pkg/apiserver), an unexported field. Its work queue is shut down
// when it has run, but the hook that runs it leaves it alone when the server is
// stopped before. TestDiscoveryController notices when upstream changes.

import (
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
)

// ShutDownDiscovery ends the discovery controller of an aggregator that has not been
// ready, so that the hook may not have come that far.
func ShutDownDiscovery(aggregator *aggregatorapiserver.APIAggregator) error {
	controller, err := unexported[aggregatorapiserver.DiscoveryAggregationController](aggregator, "discoveryAggregationController")
	if err != nil || *controller == nil {
		return err
	}
	ended := make(chan struct{})
	close(ended)
	(*controller).Run(ended, nil)
	return nil
}
