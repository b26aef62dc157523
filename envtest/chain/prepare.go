package chain

import "context"

// prepare is upstream's PrepareRun: OpenAPI installation, healthz, livez,
// readyz, from the end of the chain to its head.
func (c *Chain) prepare(context.Context) error {
	prepared, err := c.servers.aggregator.PrepareRun()
	if err != nil {
		return err
	}
	c.prepared = prepared
	c.schemas.slow(c.servers.aggregator)
	handler := c.servers.aggregator.GenericAPIServer.Handler
	c.unseen = handler.FullHandlerChain
	handler.FullHandlerChain = c.requests.Outermost(c.unseen)
	return nil
}
