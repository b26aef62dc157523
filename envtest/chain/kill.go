package chain

import (
	"context"
	"fmt"

	"snowglobe.test/envtest/trace"
)

// Kill ends the server as the end of its process would: when it returns, its
// clients' connections have been reset, nothing more of it reaches the store, and
// no client receives anything from it any more. Its goroutines end later, with the context
// of Run. Only the first call does anything. When ctx ends first, the error says what may
// still reach the store.
func (c *Chain) Kill(ctx context.Context, cause error) error {
	if !c.dead.CompareAndSwap(false, true) {
		return nil
	}
	defer close(c.killed)
	c.cfg.Trace.Record(trace.Note{Text: fmt.Sprintf("%s crashed: %v", c.cfg.Server, cause)})
	c.cfg.Trace.Close()
	c.cfg.Endpoint.Reset()
	err := c.cfg.Connection.Break(ctx)
	c.injector.End()
	return err
}

// Dead reports whether the server has been killed, or is about to be.
func (c *Chain) Dead() bool { return c.dead.Load() }

// Killed is closed when Kill has returned.
func (c *Chain) Killed() <-chan struct{} { return c.killed }

// crash kills the server because of a rule, if it is between boot and shutdown. Before the
// boot is over it must keep its store, since much of upstream can be stopped only after a
// boot. So then, and during a shutdown, the crash is reported as a failure of the server.
func (c *Chain) crash(cause error) {
	if !c.BeenReady() || c.stopping.Err() != nil {
		c.cfg.Crash(cause)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	_ = c.Kill(ctx, cause)
}
