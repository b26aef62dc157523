package suite

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/memnet"
)

// Network is what control planes reach outside: servers in the memory of the process, each at
// an address. The machine's network is no part of it.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*memnet.Listener
}

// At returns the listener at an address, which is HOST:PORT, or HOST for all ports, or the path
// of a socket.
func (n *Network) At(address string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*memnet.Listener{}
	}
	n.listeners[address] = memnet.Listen()
	return n.listeners[address]
}

// Option has a control plane that the case launches reach this network and no other.
func (n *Network) Option() envtest.Option { return envtest.WithDialer(n.Dial) }

// Dial connects to a server of the network.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address) // the path of a socket has none
	n.mu.Lock()
	listener := cmp.Or(n.listeners[address], n.listeners[host])
	n.mu.Unlock()
	if listener == nil {
		return nil, fmt.Errorf("no server is at %s", address)
	}
	return listener.DialContext(ctx)
}

func (n *Network) leave(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.listeners, address)
}

// AtAddress returns the listener at an address of the network that all control planes beside the
// cluster reach, unless they are launched with another. It is there until the case ends.
func (t *T) AtAddress(address string) net.Listener {
	network := &t.Cluster.Launcher.network
	listener := network.At(address)
	t.Cleanup(func(context.Context) error {
		network.leave(address)
		return listener.Close()
	})
	return listener
}

// Serve serves a fake until the case ends, at a host of its own that all control planes beside the cluster
// reach, unless they are launched with another network.
func Serve[S interface{ Stop(context.Context) error }](t *T, name string,
	serve func(net.Listener, ...string) (S, error)) S {
	host := name + "." + t.Name + ".example.com"
	server, err := serve(t.AtAddress(host), host)
	t.Must(err, "serve the fake %s", name)
	t.Cleanup(server.Stop)
	return server
}
