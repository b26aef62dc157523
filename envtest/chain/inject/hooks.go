package inject

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/trace"
)

// Hooks asks the rules before lifecycle hooks run, and records the hooks.
type Hooks struct {
	// Injector is asked about post-start hooks. Ending is asked about pre-shutdown
	// hooks, and so must not end before the server stops. Both may be nil.
	Injector, Ending *edge.Injector
	// Recorder records every hook.
	Recorder *trace.Recorder
	// Failed is told of a failed post-start hook, where upstream calls klog.Fatalf.
	Failed  func(error)
	pending sync.WaitGroup // post-start hooks that have not returned
}

// Wait returns when all post-start hooks have, dropped ones when the server stops.
func (h *Hooks) Wait() { h.pending.Wait() }

// PostStart wraps a post-start hook. The result must be called once.
func (h *Hooks) PostStart(name string, upstream genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
	h.pending.Add(1)
	return func(hook genericapiserver.PostStartHookContext) error {
		returned := h.pending.Done
		defer func() { returned() }()
		ctx := h.noticing(hook, trace.PostStart, name)
		return edge.Execute(ctx, h.Injector, describeHook(trace.PostStart, name), edge.Ways[error]{
			Proceed: func() error {
				h.record(trace.PostStart, name, trace.Start, nil)
				if err := upstream(hook); err != nil {
					h.fail(name, err, func() {})
				}
				h.record(trace.PostStart, name, trace.End, nil)
				return nil
			},
			Fail: func(err error) error {
				h.record(trace.PostStart, name, trace.Start, nil)
				// The server cannot stop before the hook has done its work.
				h.fail(name, err, func() { _ = upstream(hook) })
				return nil
			},
			Drop: func() error {
				returned = func() {}
				go func() {
					defer h.pending.Done()
					_ = h.Injector.Lost(hook) // until the server stops, which waits for what the hook does
					_ = upstream(hook)        // whether it fails is no news any more
				}()
				return nil
			},
		})
	}
}

// fail ends the server, not the process, and never returns: the check stays red.
func (h *Hooks) fail(name string, err error, cleanUp func()) {
	h.record(trace.PostStart, name, trace.End, err)
	h.Failed(&process.SiteError{Site: fault.HookPoint + name, Err: fmt.Errorf("post-start hook %q failed: %w", name, err)})
	cleanUp()
	runtime.Goexit()
}

// PreShutdown wraps a pre-shutdown hook.
func (h *Hooks) PreShutdown(name string, upstream genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc {
	return func() error {
		ctx := h.noticing(context.Background(), trace.PreShutdown, name)
		run := func(do func() error) error {
			h.record(trace.PreShutdown, name, trace.Start, nil)
			err := do()
			h.record(trace.PreShutdown, name, trace.End, err)
			return err
		}
		return edge.Execute(ctx, h.Ending, describeHook(trace.PreShutdown, name), edge.Ways[error]{
			Proceed: func() error { return run(upstream) },
			Fail:    func(err error) error { return run(func() error { return err }) },
			Drop:    func() error { return nil },
		})
	}
}

func describeHook(kind trace.HookKind, name string) func() fault.Operation {
	return func() fault.Operation { return fault.Operation{Point: fault.HookPoint + name, Verb: string(kind)} }
}

// noticing returns a context that records when rules hold and release a hook.
func (h *Hooks) noticing(ctx context.Context, kind trace.HookKind, name string) context.Context {
	return fault.WithNotice(ctx, func(phase trace.Phase, rule fault.Rule) {
		if rule.Kind == fault.Hold {
			h.record(kind, name, phase, nil)
		}
	})
}

func (h *Hooks) record(kind trace.HookKind, name string, phase trace.Phase, err error) {
	h.Recorder.Record(trace.Hook{Kind: kind, Name: name, Phase: phase, Err: err})
}
