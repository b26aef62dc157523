package chain

import (
	"context"

	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
)

// buildNotFound makes the end of the chain: a handler that answers 404, or 503
// while the server has not yet installed all its paths.
func (c *Chain) buildNotFound(context.Context) error {
	handler := notfoundhandler.New(c.configs.kubeapi.ControlPlane.Generic.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)
	c.servers.notFound = genericapiserver.NewEmptyDelegateWithCustomHandler(handler)
	return nil
}
