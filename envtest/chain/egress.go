package chain

import (
	"context"
	"net"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
)

// buildEgress decides how the server dials out. Upstream once opened SSH
// tunnels to the nodes here; today an egress selector, configured by
// --egress-selector-config-file in the generic stage, picks a dialer for each
// network. This stage makes the dialer for the store, which a harness owns.
func (c *Chain) buildEgress(context.Context) error {
	dial := c.cfg.Store.Endpoints().Dial
	if dial == nil {
		return nil
	}
	c.storeDialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, address)
	}
	return nil
}

// egressLookup is the lookup of the store's transport: the store's own dialer
// first, the configured selector for the rest.
func (c *Chain) egressLookup(selector *egressselector.EgressSelector) egressselector.Lookup {
	return func(network egressselector.NetworkContext) (utilnet.DialFunc, error) {
		switch {
		case network.EgressSelectionName == egressselector.Etcd.AsNetworkContext().EgressSelectionName && c.storeDialer != nil:
			return c.storeDialer, nil
		case selector != nil:
			return selector.Lookup(network)
		default:
			return nil, nil
		}
	}
}
