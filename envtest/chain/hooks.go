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
	if c.cfg.Bootstrapped {
		prompt = bootstrap.NothingToDo()
	}
	first := upstream.NewInformersFirst(c.caches.BeginPolicies,
		c.generic.informers, c.servers.apiextensions.Informers, c.servers.aggregator.APIRegistrationInformers)
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
		case name == bootstrap.ServiceCIDRHook && !c.cfg.UpstreamPauses:
			hook = bootstrap.ServiceCIDR(hook, c.serviceRanges()...)
		case name == bootstrap.AuthenticationInfoHook && !c.cfg.UpstreamPauses:
			hook = bootstrap.AuthenticationInfo(hook, c.servers.kubeapi.ControlPlane.ClusterAuthenticationInfo)
		}
		if !c.cfg.UpstreamPauses {
			hook = first.Wrap(name, hook)
		}
		return h.PostStart(name, hook)
	})
	if err := errors.Join(err, changed); err != nil {
		return err
	}
	c.hooks = h
	if h.stopping, err = upstream.WrapPreShutdownHooks(c.server(), c.preShutdown); err != nil {
		return err
	}
	return c.knowNames()
}

// serviceRanges are the ranges of --service-cluster-ip-range, one or two.
func (c *Chain) serviceRanges() []string {
	extra := c.configs.kubeapi.Extra
	ranges := []string{extra.ServiceIPRange.String()}
	if extra.SecondaryServiceIPRange.IP != nil {
		ranges = append(ranges, extra.SecondaryServiceIPRange.String())
	}
	return ranges
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
