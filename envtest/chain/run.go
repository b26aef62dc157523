package chain

import (
	"context"
	"errors"
	"net/http"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/trace"
)

// errStopping is the cause with which long-running requests end.
var errStopping = errors.New("the API server is stopping")

// notAcceptingNewRequest is the lifecycle signal after which upstream drains.
const notAcceptingNewRequest = "NotAcceptingNewRequest"

// inFlightRequestsDrained is the lifecycle signal after which only idle
// connections are left.
const inFlightRequestsDrained = "InFlightRequestsDrained"

// hasBeenReady is the lifecycle signal of the first green /readyz.
const hasBeenReady = "HasBeenReady"

// muxAndDiscoveryComplete is the lifecycle signal after which a path that is not
// there is answered with 404, not with 503.
const muxAndDiscoveryComplete = "MuxAndDiscoveryComplete"

// Handler returns the whole chain, filters included, as one handler.
func (c *Chain) Handler() http.Handler { return c.server().Handler }

func (c *Chain) server() *genericapiserver.GenericAPIServer {
	return c.servers.aggregator.GenericAPIServer
}

// Run serves until the context ends, then terminates gracefully and returns
// when upstream's Run has returned and the chain's storage is closed. A boot
// that is under way is let finish before it is stopped.
func (c *Chain) Run(ctx context.Context) error {
	err := c.enter(context.WithoutCancel(ctx), stageRun, func() error {
		c.cfg.Endpoint.Open(c.Handler())
		ended := make(chan struct{})
		var watchers sync.WaitGroup
		for _, s := range c.signals {
			watchers.Go(func() { c.watchSignal(s, ended) })
		}
		serving, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		watchers.Go(func() {
			select {
			case <-ctx.Done():
				c.stopping.Store(true)
				c.cfg.Endpoint.Drain()
				c.finishBoot(serving)
				c.storeDialer.stop()
				stop()
			case <-ended:
			}
		})
		err := c.prepared.Run(serving)
		close(ended)
		watchers.Wait()
		c.cfg.Endpoint.Close()
		c.end()
		return err
	})
	if errors.Is(err, ErrStopped) {
		c.windDown(ctx, nil)
	}
	return err
}

// BeenReady says whether the server has been ready, so that its boot is over.
func (c *Chain) BeenReady() bool {
	for _, s := range c.signals {
		if s.Name() == hasBeenReady {
			return signaled(s)
		}
	}
	return false
}

// watchSignal records a lifecycle signal, and ends the long-running requests
// when upstream begins to drain: nothing else would, as no process ends.
func (c *Chain) watchSignal(s signal, ended <-chan struct{}) {
	select {
	case <-s.Signaled():
	case <-ended:
		if !signaled(s) {
			return
		}
	}
	c.cfg.Trace.Record(trace.Signal{Name: s.Name()})
	switch s.Name() {
	case notAcceptingNewRequest:
		c.requests.CancelLongRunning(errStopping)
	case inFlightRequestsDrained:
		c.cfg.Endpoint.Close()
	}
}
