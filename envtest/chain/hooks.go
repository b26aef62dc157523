package chain

import (
	"context"
	"errors"
	"slices"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/chain/bootstrap"
	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/chain/upstream"
)

// hookSet has the hooks of one chain.
type hookSet struct {
	inject.Hooks
	upstream map[string]genericapiserver.PostStartHookFunc // the post-start hooks, unwrapped
	names    []string                                      // of the post-start hooks, sorted
	stopping []string                                      // of the pre-shutdown hooks, sorted
}

// wrapHooks puts the rules and the trace around all post-start and pre-shutdown
// hooks, after PrepareRun, which adds the last. Then all names in rules are known.
func (c *Chain) wrapHooks(context.Context) error {
	h := &hookSet{
		Hooks: inject.Hooks{
			Injector: c.injector, Ending: c.ending, Recorder: c.cfg.Trace, Failed: func(err error) { c.cfg.Crash(err) },
		},
		upstream: map[string]genericapiserver.PostStartHookFunc{},
	}
	prompt := bootstrap.Hooks()
	var err, changed error
	h.names, err = upstream.WrapPostStartHooks(c.server(), func(name string, hook genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
		if name == bootstrap.ServiceRepairHook {
			hook, changed = bootstrap.ServiceRepair(hook)
		}
		h.upstream[name] = hook
		switch {
		case name == upstream.AutoregistrationHook:
			hook = c.autoregistering.Wrap(hook, c.crdsEnabled())
		case name == reloadProxyCertificateHook && (c.ownFrontProxy() || c.cfg.Virtual):
			hook = withoutReload(hook)
		case prompt[name] != nil && !c.cfg.UpstreamPauses:
			hook = prompt[name]
		}
		return h.PostStart(name, hook)
	})
	if err := errors.Join(err, changed); err != nil {
		return err
	}
	c.hooks = h
	h.stopping, err = upstream.WrapPreShutdownHooks(c.server(), func(name string, hook genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc {
		return c.preShutdown(name, hook)
	})
	if err != nil {
		return err
	}
	return c.knowNames()
}

// Hooks returns the names of the post-start hooks, sorted.
func (c *Chain) Hooks() []string { return slices.Clone(c.hooks.names) }

// preShutdown wraps a pre-shutdown hook. Before the first one runs, or a rule drops
// or fails it, lease renewals end.
func (c *Chain) preShutdown(name string, hook genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc {
	injected := c.hooks.PreShutdown(name, func() error {
		c.renewals.Stop()
		err := hook()
		c.peerLease.AwaitRemoval()
		return err
	})
	return func() error {
		defer c.renewals.Stop()
		return injected()
	}
}
