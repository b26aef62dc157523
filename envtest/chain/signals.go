package chain

import (
	"fmt"
	"slices"
	"strings"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/chain/upstream"
)

// bootSignals are the lifecycle signals of a boot; the others are of a termination.
var bootSignals = []string{upstream.HasBeenReady, upstream.MuxAndDiscoveryComplete}

// injectSignals wraps the lifecycle signals, before the servers copy them.
func (c *Chain) injectSignals(config *genericapiserver.Config) error {
	err := upstream.ReplaceSignals(config, func(s upstream.LifecycleSignal) upstream.LifecycleSignal {
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
	for _, name := range c.cfg.EarlySignals {
		if err == nil && !slices.Contains(c.signalNames(), name) {
			err = c.noSignal(name)
		}
	}
	return err
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

// FireSignal fires one of upstream's lifecycle signals early, as a bug would.
func (c *Chain) FireSignal(name string) error {
	for _, s := range c.signals {
		if s.Name() == name {
			s.Signal()
			return nil
		}
	}
	return c.noSignal(name)
}

func (c *Chain) noSignal(name string) error {
	return fmt.Errorf("no lifecycle signal %q; the signals are %s", name, strings.Join(c.signalNames(), ", "))
}
