package chain

import (
	"slices"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// bootSignals are the lifecycle signals of a boot; the others are of a termination.
var bootSignals = []string{upstream.HasBeenReady, upstream.MuxAndDiscoveryComplete}

// injectSignals wraps the lifecycle signals, before the servers copy them.
func (c *Chain) injectSignals(config *genericapiserver.Config) error {
	return upstream.ReplaceSignals(config, func(original upstream.LifecycleSignal) upstream.LifecycleSignal {
		s := &signal{LifecycleSignal: original, chain: c}
		c.signals = append(c.signals, s)
		injector, firing := c.ending, &c.firingAtEnd
		if slices.Contains(bootSignals, s.Name()) {
			injector, firing = c.injector, &c.firing
		}
		injected := inject.NewSignal(s, injector, firing)
		if s.Name() == upstream.HasBeenReady {
			c.readySignal = injected.Done()
		}
		return injected
	})
}

// ReadySignal is closed when HasBeenReady has fired, or a rule has dropped it.
func (c *Chain) ReadySignal() <-chan struct{} { return c.readySignal }

func (c *Chain) signalNames() []string {
	names := make([]string, len(c.signals))
	for i, s := range c.signals {
		names[i] = s.Name()
	}
	return names
}

// obeyFires lets rules fire signals before their time, from now on.
func (c *Chain) obeyFires() {
	for _, s := range c.signals {
		c.injector.OnFire(fault.Operation{Point: fault.SignalPoint + s.Name()}, s.Signal)
	}
}

// signal is one of upstream's lifecycle signals, which the chain follows while it serves.
// It does so before anybody is told, in the goroutine that signals: so signals are recorded
// in upstream's order.
type signal struct {
	upstream.LifecycleSignal
	chain *Chain
	once  sync.Once
}

// Signal implements upstream's lifecycleSignal.
func (s *signal) Signal() {
	s.follow()
	s.LifecycleSignal.Signal()
	s.follow() // if the chain has begun to serve meanwhile
}

func (s *signal) follow() {
	if s.chain.following.Load() {
		s.once.Do(func() { s.chain.signaled(s.Name()) })
	}
}

// followSignals makes up for the signals that were fired before the chain serves.
func (c *Chain) followSignals() {
	c.following.Store(true)
	for _, s := range c.signals {
		if upstream.Fired(s) {
			s.follow()
		}
	}
}

// signaled records a lifecycle signal, and ends the long-running requests when upstream
// begins to drain: nothing else would, as no process ends.
func (c *Chain) signaled(name string) {
	if name == upstream.HTTPServerStoppedListening {
		c.cfg.Endpoint.Close()
	}
	c.cfg.Trace.Record(trace.Signal{Name: name})
	switch name {
	case upstream.NotAcceptingNewRequest:
		c.requests.CancelLongRunning(errStopping)
	case upstream.InFlightRequestsDrained:
		c.cfg.Endpoint.Close()
	}
}
