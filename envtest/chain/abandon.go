package chain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"snowglobe.test/envtest/trace"
)

// Upstream gives up much of what it takes in an assembly or a boot only when the
// boot has come to its end: controllers shut the queues down, which they made
// when they were built, in their Run, and some wait without end for others. So a
// boot that is to be stopped is let finish first.

// finishTimeout bounds how long a boot may take to finish when it is stopped.
const finishTimeout = 10 * time.Second

// finishBoot ends all that rules do to a boot, and waits until every hook has returned,
// what they started has come far enough to be stopped, and the server is as
// ready as it gets.
func (c *Chain) finishBoot(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	c.edge.End()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		c.hooks.Wait()
	}()
	for _, done := range []<-chan struct{}{returned, c.autoregistration.began} {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
	for !c.bootDone(ctx) {
		select {
		case <-time.After(hookRetryFirstPause):
		case <-ctx.Done():
			return
		}
	}
}

// bootDone says whether the server has been ready, or nothing is red but hooks
// that have failed.
func (c *Chain) bootDone(ctx context.Context) bool {
	for _, s := range c.signals {
		if s.Name() == hasBeenReady && signaled(s) {
			return true
		}
	}
	ready, checks := c.Probe(ctx, "readyz")
	return ready || len(checks) > 0 && !slices.ContainsFunc(checks, func(check trace.Check) bool {
		return !check.OK && !strings.HasPrefix(check.Name, "poststarthook/")
	})
}

// windDown finishes, unseen, an assembly that was stopped between two stages:
// the rest of the chain is assembled, started and stopped.
func (c *Chain) windDown(ctx context.Context, rest []stage) {
	c.cfg.Trace = trace.NewRecorder(c.cfg.Name, 1)
	c.requests.SetRecorder(c.cfg.Trace)
	c.cfg.Crash = func(error) {}
	if c.hooks != nil {
		c.hooks.Recorder = c.cfg.Trace
	}
	c.cfg.Hooks, c.cfg.Faults, c.cfg.StopBefore = nil, nil, ""
	c.edge.End()
	c.ending.End()
	for _, s := range rest {
		if s.do(c, ctx) != nil {
			c.abandon()
			return
		}
	}
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx))
	stop()
	_ = c.Run(stopped)
}

// abandon releases what an assembly has taken that failed on the way to its
// servers.
func (c *Chain) abandon() {
	ended := make(chan struct{})
	close(ended)
	if c.generic != nil && c.generic.config.FlowControl != nil {
		_ = c.generic.config.FlowControl.Run(ended)
	}
	if kube := c.configs.kubeapi.Config; kube != nil && kube.ControlPlane.PeerEndpointLeaseReconciler != nil {
		kube.ControlPlane.PeerEndpointLeaseReconciler.Destroy()
	}
	if c.endpoints != nil {
		c.endpoints.Destroy()
	}
	if c.servers.apiextensions != nil {
		c.servers.apiextensions.GenericAPIServer.Destroy()
	}
	c.end()
}

// giveUp picks how an assembly that ended with err before or in a stage is to
// be released.
func (c *Chain) giveUp(ctx context.Context, err error, at int) {
	var unknown *unknownNamesError
	switch {
	case c.generic == nil: // nothing has been started yet
		c.end()
	case errors.Is(err, ErrStopped):
		c.windDown(ctx, assembly[at:])
	case errors.As(err, &unknown): // the stage has done all it had to
		c.windDown(ctx, assembly[at+1:])
	default:
		c.abandon()
	}
}
