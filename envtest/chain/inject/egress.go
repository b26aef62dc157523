package inject

import (
	"context"
	"net"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/internal/conns"
)

// Egress asks the rules before a network is dialed, until it is closed, which
// closes the connections too: upstream keeps those to webhooks and aggregated
// servers open for more requests, and no process ends that would close them.
//
// It must be closed also because client-go's transport cache keeps dialers as keys
// for ever, and one with an Injector, or with a dialer of the chain's user, keeps a
// whole chain in memory. Make it with NewEgress.
type Egress struct {
	injector atomic.Pointer[edge.Injector]
	dialers  []*atomic.Pointer[utilnet.DialFunc]
	open     conns.Set
	closed   atomic.Bool
}

// NewEgress returns an Egress that asks the injector, which may be nil.
func NewEgress(i *edge.Injector) *Egress {
	e := &Egress{}
	e.injector.Store(i)
	return e
}

// Dialer returns a network's dialer that asks first. Rules see the host only: ports
// and the paths of sockets may differ from run to run. All dialers are made before the
// first is used.
func (e *Egress) Dialer(network egressselector.EgressType, dial utilnet.DialFunc) utilnet.DialFunc {
	dialer := &atomic.Pointer[utilnet.DialFunc]{}
	dialer.Store(&dial)
	e.dialers = append(e.dialers, dialer)
	return func(ctx context.Context, kind, address string) (net.Conn, error) {
		return edge.Call(ctx, e.injector.Load(), func() fault.Operation {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				host = ""
			}
			return fault.Operation{Point: fault.EgressPoint + network.String(), Key: host}
		}, func(ctx context.Context) (net.Conn, error) {
			dial := dialer.Load()
			if dial == nil {
				return nil, net.ErrClosed
			}
			conn, err := (*dial)(ctx, kind, address)
			if err != nil {
				return nil, err
			}
			conn = e.open.Add(conn)
			if e.closed.Load() {
				_ = conn.Close()
				return nil, net.ErrClosed
			}
			return conn, nil
		})
	}
}

// Close closes all connections, also those that are just being dialed, and forgets
// the injector and the dialers.
func (e *Egress) Close() {
	e.injector.Store(nil)
	for _, dialer := range e.dialers {
		dialer.Store(nil)
	}
	e.closed.Store(true)
	e.open.CloseAll()
}
