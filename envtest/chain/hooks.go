package chain

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/chain/bootstrap"
	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// What the operations of hooks are called in rules.
const (
	hookPoint       = "hook/"
	postStartVerb   = string(trace.PostStart)
	preShutdownVerb = string(trace.PreShutdown)
)

// hookSet wraps the hooks of one chain.
type hookSet struct {
	chain    *Chain
	upstream map[string]genericapiserver.PostStartHookFunc // the post-start hooks, unwrapped
	names    []string                                      // of the post-start hooks, sorted
	stopping []string                                      // of the pre-shutdown hooks, sorted
	pending  sync.WaitGroup                                // hooks that have not returned
}

// wrapHooks puts the rules and the trace around every post-start and
// pre-shutdown hook; it comes after PrepareRun, which adds the last of them. From
// then on all names are known that rules may name.
func (c *Chain) wrapHooks(context.Context) error {
	h := &hookSet{chain: c, upstream: map[string]genericapiserver.PostStartHookFunc{}}
	prompt := bootstrap.Hooks()
	var err error
	h.names, err = upstream.WrapPostStartHooks(c.server(), func(name string, hook genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
		h.upstream[name] = hook
		switch {
		case name == upstream.AutoregistrationHook:
			hook = c.autoregistering.Wrap(hook, c.crdsEnabled())
		case prompt[name] != nil && !c.cfg.UpstreamPauses:
			hook = prompt[name]
		}
		return h.postStart(name, hook)
	})
	if err != nil {
		return err
	}
	c.hooks = h
	if h.stopping, err = upstream.WrapPreShutdownHooks(c.server(), h.preShutdown); err != nil {
		return err
	}
	return c.knowNames()
}

// Hooks returns the names of the post-start hooks, sorted.
func (c *Chain) Hooks() []string { return slices.Clone(c.hooks.names) }

func (h *hookSet) postStart(name string, upstream genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
	record := h.recorder(trace.PostStart, name)
	h.pending.Add(1)
	return func(hook genericapiserver.PostStartHookContext) error {
		returned := h.pending.Done
		defer func() { returned() }()
		run := func(failure error) error {
			record(trace.Start, nil)
			err := failure
			if err == nil {
				err = upstream(hook)
			}
			record(trace.End, err)
			if err == nil {
				return nil
			}
			// Upstream would end the process here, by klog.Fatalf. The chain ends
			// instead, and the hook's readiness check stays red as it would have.
			h.chain.cfg.Crash(fmt.Errorf("post-start hook %q failed: %w", name, err))
			if failure != nil {
				_ = upstream(hook) // others wait for what it does, and must end too
			}
			runtime.Goexit()
			return nil
		}
		return h.execute(hook, h.chain.injector, postStartVerb, name, record, fault.Ways[error]{
			Proceed: func() error { return run(nil) },
			Fail:    run,
			Drop: func() error {
				returned = func() {}
				go h.runLate(upstream, hook)
				return nil
			},
		})
	}
}

// runLate runs a hook that was dropped when the server stops: others wait for
// what it does, and must end too.
func (h *hookSet) runLate(upstream genericapiserver.PostStartHookFunc, hook genericapiserver.PostStartHookContext) {
	defer h.pending.Done()
	_ = h.chain.injector.Lost(hook) // until the server stops
	_ = upstream(hook)              // whether it fails is no news any more
}

// execute runs a hook as the rules say. The trace says of the hook when it is held.
func (h *hookSet) execute(ctx context.Context, injector *fault.Injector, verb, name string, record func(trace.Phase, error), ways fault.Ways[error]) error {
	ctx = fault.WithNotice(ctx, func(phase trace.Phase, rule fault.Rule) {
		if rule.Kind == fault.Hold {
			record(phase, nil)
		}
	})
	return fault.Execute(ctx, injector, func() fault.Operation { return fault.Operation{Point: hookPoint + name, Verb: verb} }, ways)
}

func (h *hookSet) recorder(kind trace.HookKind, name string) func(trace.Phase, error) {
	return func(phase trace.Phase, err error) {
		h.chain.cfg.Trace.Record(trace.Hook{Kind: kind, Name: name, Phase: phase, Err: err})
	}
}

func (h *hookSet) preShutdown(name string, upstream genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc {
	record := h.recorder(trace.PreShutdown, name)
	return func() error {
		run := func(err error) error {
			h.chain.renewals.Stop()
			record(trace.Start, nil)
			if err == nil {
				err = upstream()
				h.chain.peerLease.AwaitRemoval()
			}
			record(trace.End, err)
			return err
		}
		return h.execute(context.Background(), h.chain.ending, preShutdownVerb, name, record, fault.Ways[error]{
			Proceed: func() error { return run(nil) },
			Fail:    run,
			Drop:    func() error { h.chain.renewals.Stop(); return nil },
		})
	}
}
