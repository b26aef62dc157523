package chain

import (
	"context"
	"errors"
	"fmt"
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

// Handler returns the whole chain, filters included, as one handler.
func (c *Chain) Handler() http.Handler { return c.server().Handler }

func (c *Chain) server() *genericapiserver.GenericAPIServer {
	return c.servers.aggregator.GenericAPIServer
}

// Run serves until the context ends, then terminates gracefully and returns
// when upstream's Run has returned and the chain's storage is closed.
func (c *Chain) Run(ctx context.Context) error {
	return c.enter(ctx, stageRun, func() error {
		c.cfg.Accept(c.Handler())
		var watchers sync.WaitGroup
		ended := make(chan struct{})
		for _, s := range c.signals {
			watchers.Go(func() { c.watchSignal(s, ended) })
		}
		err := c.prepared.Run(ctx)
		close(ended)
		watchers.Wait()
		c.cfg.Drained()
		c.end()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("run: %w", err)
		}
		return err
	})
}

// watchSignal records a lifecycle signal, and ends the long-running requests
// when upstream begins to drain: nothing else would, as no process ends.
func (c *Chain) watchSignal(s signal, ended <-chan struct{}) {
	select {
	case <-s.Signaled():
	case <-ended:
		select {
		case <-s.Signaled():
		default:
			return
		}
	}
	c.cfg.Trace.Record(trace.Signal{Name: s.Name()})
	switch s.Name() {
	case notAcceptingNewRequest:
		c.requests.cancelLongRunning(errStopping)
	case inFlightRequestsDrained:
		c.cfg.Drained()
	}
}
