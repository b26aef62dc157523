package chain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/envtest/fault"
)

// bootSignals are the lifecycle signals of a boot; the others are of a
// termination.
var bootSignals = []string{upstream.HasBeenReady, upstream.MuxAndDiscoveryComplete}

// injectedSignal asks the rules before upstream's signal fires. Whoever fires it
// never waits.
type injectedSignal struct {
	upstream.LifecycleSignal
	injector *fault.Injector
	once     sync.Once
	firing   *sync.WaitGroup // who waits to fire
	done     chan struct{}   // closed when it has fired or is dropped
}

// Signal implements upstream's lifecycleSignal.
func (s *injectedSignal) Signal() {
	if !s.injector.Active() {
		s.LifecycleSignal.Signal()
		s.once.Do(func() { close(s.done) })
		return
	}
	s.once.Do(func() { s.firing.Go(s.fire) })
}

// fire fires the signal unless it is dropped. A server that has crashed must
// still come to its end.
func (s *injectedSignal) fire() {
	defer close(s.done)
	fault.Execute(context.Background(), s.injector, func() fault.Operation { return fault.Operation{Point: "signal/" + s.Name()} }, fault.Ways[struct{}]{
		Proceed: func() struct{} { s.LifecycleSignal.Signal(); return struct{}{} },
		Fail:    func(error) struct{} { s.LifecycleSignal.Signal(); return struct{}{} },
		Drop:    func() struct{} { return struct{}{} },
	})
}

// injectSignals puts an injectedSignal in the place of each of a configuration's
// lifecycle signals. It comes before the servers copy them.
func (c *Chain) injectSignals(config *genericapiserver.Config) error {
	return upstream.ReplaceSignals(config, func(s upstream.LifecycleSignal) upstream.LifecycleSignal {
		c.signals = append(c.signals, s)
		injector := c.ending
		if slices.Contains(bootSignals, s.Name()) {
			injector = c.injector
		}
		injected := &injectedSignal{LifecycleSignal: s, injector: injector, firing: &c.firing, done: make(chan struct{})}
		if s.Name() == upstream.HasBeenReady {
			c.readySignal = injected.done
		}
		return injected
	})
}

// ReadySignal is closed when HasBeenReady, of the first green /readyz, has fired
// or is dropped, and whatever rules do to it has been done.
func (c *Chain) ReadySignal() <-chan struct{} { return c.readySignal }

func (c *Chain) signalNames() []string {
	names := make([]string, len(c.signals))
	for i, s := range c.signals {
		names[i] = s.Name()
	}
	return names
}

// FireSignal fires a lifecycle signal before its time, as a bug would. The
// signals are upstream's: MuxAndDiscoveryComplete, HasBeenReady, ...
func (c *Chain) FireSignal(name string) error {
	for _, s := range c.signals {
		if s.Name() == name {
			s.Signal()
			return nil
		}
	}
	return fmt.Errorf("no lifecycle signal %q; the signals are %s", name, strings.Join(c.signalNames(), ", "))
}
