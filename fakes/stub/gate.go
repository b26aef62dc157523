package stub

import (
	"context"
	"fmt"
	"sync"

	"snowglobe.test/internal/broadcast"
)

// Gate holds requests until it is opened. A nil Gate is not valid; NewGate makes one.
type Gate struct {
	open chan struct{}

	mu       sync.Mutex
	opened   bool
	arrivals int
	arrived  broadcast.News
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{open: make(chan struct{})} }

// Await returns when this number of requests has come to the gate, whether they still wait
// there or not.
func (g *Gate) Await(ctx context.Context, requests int) error {
	arrivals := 0
	err := g.arrived.Await(ctx, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		arrivals = g.arrivals
		return arrivals >= requests
	})
	if err != nil {
		return fmt.Errorf("%d of %d requests have come to the gate: %w", arrivals, requests, err)
	}
	return nil
}

// Open lets all requests go, those that are still to come included. It may be called
// again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opened {
		g.opened = true
		close(g.open)
	}
}

// wait returns when the gate is open. If the request's context ends first, that is an
// error.
func (g *Gate) wait(ctx context.Context) error {
	g.mu.Lock()
	g.arrivals++
	g.arrived.Tell()
	opened := g.opened
	g.mu.Unlock()
	if opened { // also if ctx has ended: select would choose at random
		return nil
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("held at a gate: %w", context.Cause(ctx))
	}
}
