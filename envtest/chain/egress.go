package chain

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"

	"snowglobe.test/envtest/memnet"
)

// buildEgress decides how the server dials out. Upstream once opened SSH
// tunnels to the nodes here; today an egress selector, configured by
// --egress-selector-config-file in the generic stage, picks a dialer for each
// network. This stage makes the dialer for the store, which a harness owns.
func (c *Chain) buildEgress(context.Context) error {
	if dial := c.cfg.Store.Endpoints().Dial; dial != nil {
		c.storeDialer = &storeDialer{dial: utilnet.DialFunc(dial)}
	}
	return nil
}

// egressLookup is the lookup of the store's transport: the store's dialer
// first, the configured selector for the rest.
func (c *Chain) egressLookup(selector *egressselector.EgressSelector) egressselector.Lookup {
	return func(network egressselector.NetworkContext) (utilnet.DialFunc, error) {
		switch {
		case network.EgressSelectionName == egressselector.Etcd.AsNetworkContext().EgressSelectionName && c.storeDialer != nil:
			return c.storeDialer.DialContext, nil
		case selector != nil:
			return selector.Lookup(network)
		default:
			return nil, nil
		}
	}
}

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
