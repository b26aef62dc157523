package chain

import (
	"context"
	"net"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"

	"snowglobe.test/envtest/chain/egress"
)

// buildEgress makes the dialer for the store, which a harness owns. Upstream once
// opened SSH tunnels to the nodes here; today an egress selector, which the generic
// stage takes from --egress-selector-config-file, picks a dialer for each network.
func (c *Chain) buildEgress(context.Context) error {
	var err error
	if c.storeDialer, err = egress.NewStoreDialer(c.cfg.Store.Endpoints(), c.cfg.Connection, c.injector); err != nil {
		return err
	}
	c.storeDialer.Unwrap(c.options.Etcd)
	return nil
}

// injectEgress makes every dialer ask the rules first, also upstream's direct ones.
func (c *Chain) injectEgress(config *genericapiserver.Config) error {
	dialers := map[egressselector.EgressType]utilnet.DialFunc{}
	for _, network := range []egressselector.EgressType{egressselector.ControlPlane, egressselector.Cluster, egressselector.Etcd} {
		dial, err := c.selected(config, network)
		if err != nil {
			return err
		}
		if network == egressselector.Etcd {
			if c.storeDialer != nil { // or else gRPC alone knows to dial the store
				dialers[network] = c.egress.Dialer(network, c.storeDialer.Through(dial))
			}
			continue
		}
		reached := egress.Network{InProcess: c.cfg.DialInProcess, Outside: dial, Sealed: c.cfg.Dial != nil}
		dialers[network] = reached.Dialer(func(dial utilnet.DialFunc) utilnet.DialFunc { return c.egress.Dialer(network, dial) })
	}
	config.EgressSelector = egressselector.NewEgressSelectorWithMap(dialers)
	return nil
}

// selected is the dialer that flags name for a network, or else the configured one, or
// upstream's direct one. The store is never dialed by the configured one.
func (c *Chain) selected(config *genericapiserver.Config, network egressselector.EgressType) (utilnet.DialFunc, error) {
	if c.cfg.Dial != nil && network != egressselector.Etcd {
		return egress.Selected(c.options.EgressSelector.ConfigFile, network, c.cfg.Dial)
	}
	if config.EgressSelector != nil {
		dial, err := config.EgressSelector.Lookup(network.AsNetworkContext())
		if dial != nil || err != nil {
			return dial, err
		}
	}
	return (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext, nil
}

// dialTimeout is that of upstream's direct dialers, and their keep-alive.
const dialTimeout = 30 * time.Second
