package chain

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/memnet"
)

// buildEgress decides how the server dials out. Upstream once opened SSH
// tunnels to the nodes here; today an egress selector, configured by
// --egress-selector-config-file in the generic stage, picks a dialer for each
// network. This stage makes the dialer for the store, which a harness owns.
func (c *Chain) buildEgress(context.Context) error {
	if dial := c.cfg.Store.Endpoints().Dial; dial != nil {
		c.storeDialer = &storeDialer{dial: utilnet.DialFunc(c.cfg.Link.Dialer(dial))}
	}
	return nil
}

// bendEgress makes every dialer ask first. Where no selector is configured it
// makes one of upstream's direct dialers, which is what there is without.
func (c *Chain) bendEgress(config *genericapiserver.Config) error {
	c.egress.edge.Store(c.edge)
	dialers := map[egressselector.EgressType]utilnet.DialFunc{}
	for _, network := range []egressselector.EgressType{egressselector.ControlPlane, egressselector.Cluster, egressselector.Etcd} {
		var dial utilnet.DialFunc
		if config.EgressSelector != nil {
			var err error
			if dial, err = config.EgressSelector.Lookup(network.AsNetworkContext()); err != nil {
				return err
			}
		}
		if network == egressselector.Etcd && c.storeDialer != nil {
			dial = c.storeDialer.DialContext
		}
		if dial == nil && network == egressselector.Etcd && c.storeOnSocket() {
			continue
		}
		if dial == nil {
			dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext
		}
		dialers[network] = c.egress.bend(network.String(), dial)
	}
	config.EgressSelector = egressselector.NewEgressSelectorWithMap(dialers)
	return nil
}

// storeOnSocket reports whether the store's address is a socket, which gRPC alone
// knows to dial.
func (c *Chain) storeOnSocket() bool {
	return slices.ContainsFunc(c.cfg.Store.Endpoints().URLs, func(url string) bool { return strings.HasPrefix(url, "unix") })
}

// dialTimeout is that of upstream's direct dialers, and their keep-alive.
const dialTimeout = 30 * time.Second

// egressEdge asks the edge before a network is dialed, until the chain ends.
// client-go's cache of transports has dialers for its keys and so never drops
// one from which the owner of the transport can be reached: an edge leads to its
// chain, and every chain of the process would stay in memory.
type egressEdge struct {
	edge atomic.Pointer[fault.Edge]
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

// storeDialer connects upstream's own etcd clients to the store. They try again
// for minutes when the store is gone, and some of upstream's shutdown waits for
// them; so when the server stops and the store does not answer, they reach a
// server that turns every call down for good.
type storeDialer struct {
	dial utilnet.DialFunc

	mu     sync.Mutex
	refuse *memnet.Listener // nil until the server stops
	server *grpc.Server
}

// DialContext connects to the store.
func (d *storeDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	d.mu.Lock()
	refuse := d.refuse
	d.mu.Unlock()
	if err != nil && refuse != nil {
		return refuse.DialContext(ctx)
	}
	return conn, err
}

// stop begins to turn down what can't reach the store. A store that is dialed by
// the operating system has no storeDialer.
func (d *storeDialer) stop() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		return
	}
	d.refuse = memnet.Listen()
	gone := status.Error(codes.FailedPrecondition, "the store is gone and the API server is stopping")
	d.server = grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return gone }))
	go func() { _ = d.server.Serve(d.refuse) }()
}

// end closes what stop opened.
func (d *storeDialer) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != nil {
		d.server.Stop()
	}
}
