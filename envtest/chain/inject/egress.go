package inject

import (
	"context"
	"net"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"

	"snowglobe.test/envtest/fault"
)

// Egress asks before a network is dialed, until it is closed. client-go's cache of
// transports has dialers for its keys and so never drops one from which the owner of
// the transport can be reached: an Injector leads to its chain, and every chain of
// the process would stay in memory. Make it with NewEgress.
type Egress struct {
	injector atomic.Pointer[fault.Injector]
}

// NewEgress returns an Egress that asks the injector, which may be nil.
func NewEgress(i *fault.Injector) *Egress {
	e := &Egress{}
	e.injector.Store(i)
	return e
}

// Dialer returns a dialer of a network that asks first. Ports, which may be chosen
// by chance, are left out of what is dialed, and so are paths of sockets.
func (e *Egress) Dialer(network egressselector.EgressType, dial utilnet.DialFunc) utilnet.DialFunc {
	return func(ctx context.Context, kind, address string) (net.Conn, error) {
		return fault.Call(ctx, e.injector.Load(), func() fault.Operation {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				host = ""
			}
			return fault.Operation{Point: "egress/" + network.String(), Key: host}
		}, func(ctx context.Context) (net.Conn, error) { return dial(ctx, kind, address) })
	}
}

// Close forgets the injector: what is dialed from now on is not asked about.
func (e *Egress) Close() { e.injector.Store(nil) }
