package cluster

import (
	"context"
	"fmt"
	"net"
	"sync"

	"snowglobe.test/internal/conns"
)

// gate is the way to one unix socket of a member. It can be shut, which breaks
// the connections that go through it and refuses new ones, as a dead process or
// a network that is down does.
type gate struct {
	name, socket string

	mu    sync.Mutex
	open  bool
	conns conns.Set
}

// newGate returns a gate that is shut.
func newGate(name, socket string) *gate {
	return &gate{name: name, socket: socket}
}

func (g *gate) dial(ctx context.Context) (net.Conn, error) {
	if !g.isOpen() {
		return nil, g.refusal()
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "unix", g.socket)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open { // shut while dialing
		_ = raw.Close()
		return nil, g.refusal()
	}
	return g.conns.Add(raw), nil
}

func (g *gate) refusal() error { return fmt.Errorf("%s: connection refused", g.name) }

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// set opens or shuts the gate.
func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = open
	if !open {
		g.conns.CloseAll()
	}
}
