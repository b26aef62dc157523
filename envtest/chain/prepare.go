package chain

import "context"

// prepare is upstream's PrepareRun of all servers: OpenAPI, healthz, livez, readyz.
func (c *Chain) prepare(context.Context) error {
	prepared, err := c.servers.aggregator.PrepareRun()
	if err != nil {
		return err
	}
	c.prepared = prepared
	if err := c.polling.Slow(c.servers.aggregator); err != nil {
		return err
	}
	handler := c.servers.aggregator.GenericAPIServer.Handler
	c.untraced = handler.FullHandlerChain
	handler.FullHandlerChain = c.requests.Outermost(c.untraced)
	return nil
}
