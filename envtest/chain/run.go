package chain

import (
	"context"
	"errors"
	"net/http"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/chain/upstream"
)

// errStopping is the cause with which long-running requests end.
var errStopping = errors.New("the API server is stopping")

// Handler returns the whole chain, filters included, as one handler.
func (c *Chain) Handler() http.Handler { return c.server().Handler }

func (c *Chain) server() *genericapiserver.GenericAPIServer {
	return c.servers.aggregator.GenericAPIServer
}

// Run serves until the context ends, then terminates gracefully and returns when
// upstream's Run has returned and the chain's storage is closed. A boot under way
// may finish first. A chain whose context ends before it serves, or which a rule
// does not let run, is released.
func (c *Chain) Run(ctx context.Context) error {
	entered := false
	err := c.enter(ctx, stageRun, func() error {
		entered = true
		return c.serve(ctx)
	})
	if entered {
		return err
	}
	c.release()
	if ctx.Err() != nil {
		return nil // it was stopped, and has not failed
	}
	return err
}

func (c *Chain) serve(ctx context.Context) error {
	c.cfg.Endpoint.Open(c.Handler())
	ended := make(chan struct{})
	c.followSignals()
	c.obeyFires()
	var stopper sync.WaitGroup
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	stopper.Go(func() {
		select {
		case <-ctx.Done():
			c.stop()
			c.cfg.Endpoint.Drain()
			c.finishBoot(serving)
			c.storeDialer.Stop()
			stop()
		case <-ended:
		}
	})
	err := c.prepared.Run(serving)
	// The last signals may still be on their way, or held: they are recorded, too.
	c.ending.End()
	c.firingAtEnd.Wait()
	c.following.Store(false)
	close(ended)
	stopper.Wait()
	c.cfg.Endpoint.Close()
	return errors.Join(err, c.end())
}

// BeenReady says whether the server has been ready, so that its boot is over.
func (c *Chain) BeenReady() bool {
	for _, s := range c.signals {
		if s.Name() == upstream.HasBeenReady {
			return upstream.Fired(s)
		}
	}
	return false
}
