package chain

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"

	"snowglobe.test/envtest/fault"
)

// buildEgress decides how the server dials out. Upstream once opened SSH
// tunnels to the nodes here; today an egress selector, configured by
// --egress-selector-config-file in the generic stage, picks a dialer for each
// network. This stage makes the dialer for the store, which a harness owns.
func (c *Chain) buildEgress(context.Context) error {
	var err error
	if c.storeDialer, err = newStoreDialer(c.cfg.Store.Endpoints(), c.cfg.Link, c.injector); err != nil {
		return err
	}
	c.storeDialer.unwrap(c.options.Etcd)
	return nil
}

// bendEgress makes every dialer ask first. Where no selector is configured it
// makes one of upstream's direct dialers, which is what there is without.
func (c *Chain) bendEgress(config *genericapiserver.Config) error {
	c.egress.edge.Store(c.injector)
	dialers := map[egressselector.EgressType]utilnet.DialFunc{}
	for _, network := range []egressselector.EgressType{egressselector.ControlPlane, egressselector.Cluster, egressselector.Etcd} {
		dial, err := selected(config, network)
		if err != nil {
			return err
		}
		if network == egressselector.Etcd {
			if c.storeDialer == nil {
				continue // gRPC alone knows to dial the store
			}
			dial = c.storeDialer.through(dial)
		}
		dialers[network] = c.egress.bend(network.String(), dial)
	}
	config.EgressSelector = egressselector.NewEgressSelectorWithMap(dialers)
	return nil
}

// selected is the dialer of a network that flags name, or one of upstream's direct
// dialers.
func selected(config *genericapiserver.Config, network egressselector.EgressType) (utilnet.DialFunc, error) {
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

// egressEdge asks the edge before a network is dialed, until the chain ends.
// client-go's cache of transports has dialers for its keys and so never drops
// one from which the owner of the transport can be reached: an edge leads to its
// chain, and every chain of the process would stay in memory.
type egressEdge struct {
	edge atomic.Pointer[fault.Injector]
}

// bend returns a dialer that asks first. Ports, which may be chosen by chance,
// are left out of what is dialed, and so are paths of sockets.
func (e *egressEdge) bend(network string, dial utilnet.DialFunc) utilnet.DialFunc {
	return func(ctx context.Context, kind, address string) (net.Conn, error) {
		return fault.Call(ctx, e.edge.Load(), func() fault.Operation {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				host = ""
			}
			return fault.Operation{Point: "egress/" + network, Key: host}
		}, func(ctx context.Context) (net.Conn, error) { return dial(ctx, kind, address) })
	}
}

// end lets go of the chain.
func (e *egressEdge) end() { e.edge.Store(nil) }
