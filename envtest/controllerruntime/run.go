package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"snowglobe.test/envtest"
)

// run is one run of a sweep.
type run struct {
	Sweep
	fault plannedFault // the zero value is none

	calls *calls
	admin client.Client
	state string // at the end
}

// simulate runs the steps in a control plane of its own, WithoutLatency: the cache of
// controller-runtime calls the API server while it holds a mutex, and if the call took virtual
// time, another goroutine that waits for the mutex would keep that time from passing.
func (r *run) simulate() error {
	return envtest.SimulateContext(func(ctx context.Context, cp *envtest.ControlPlane) (err error) {
		r.calls = &calls{
			fault: r.fault, staleFor: r.Settle / 2, crashed: make(chan struct{}),
			times: map[string]int{}, live: map[*watchBody]struct{}{}, old: map[string]bool{},
		}
		if r.admin, err = client.New(cp.Config(), client.Options{Scheme: r.Manager.Scheme}); err != nil {
			return err
		}
		controller := r.start(ctx, cp)
		defer func() {
			r.calls.unmute()
			err = errors.Join(err, controller.stop())
		}()
		for i, step := range r.Steps {
			unobserved := r.fault.family == Unobserved && i == r.fault.step
			if unobserved {
				r.calls.mute()
			}
			if err := step(ctx, r.admin); err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
			if unobserved {
				continue
			}
			if r.fault.family == Unobserved {
				r.calls.unmute()
			}
			if controller, err = r.settle(ctx, cp, controller); err != nil {
				return err
			}
		}
		r.state, err = r.describe(ctx)
		return err
	}, append([]envtest.Option{envtest.WithoutLatency()}, r.Options...)...)
}

// settle lets the manager work. If it has crashed by the fault, it is started again.
func (r *run) settle(ctx context.Context, cp *envtest.ControlPlane, controller *running) (*running, error) {
	select {
	case <-time.After(r.Settle):
		return controller, controller.failed()
	case <-r.calls.crashed:
		if err := controller.stop(); err != nil {
			return controller, err
		}
		r.calls.restart()
		controller = r.start(ctx, cp)
		time.Sleep(r.Settle)
		return controller, controller.failed()
	}
}

func (r *run) describe(ctx context.Context) (string, error) {
	if r.State != nil {
		return r.State(ctx, r.admin)
	}
	return objects(ctx, r.admin, r.Lists)
}

// running is a manager that runs.
type running struct {
	end   context.CancelFunc
	ended chan struct{}
	err   error // after ended
}

// start starts a manager whose calls meet the fault.
func (r *run) start(ctx context.Context, cp *envtest.ControlPlane) *running {
	running := &running{ended: make(chan struct{})}
	ctx, running.end = context.WithCancel(ctx)
	config := cp.NewClient().Config(envtest.User("manager", "system:masters"))
	config.Transport = r.calls.through(config.Transport)
	config.ContentType = runtime.ContentTypeJSON // in which names of objects can be read
	go func() {
		defer close(running.ended)
		running.err = r.manage(ctx, config)
	}()
	return running
}

// manage runs a manager until the context ends.
func (r *run) manage(ctx context.Context, config *rest.Config) error {
	options := r.Manager
	options.Metrics.BindAddress, options.HealthProbeBindAddress, options.PprofBindAddress = "0", "0", ""
	options.Controller.SkipNameValidation = new(true)
	options.Cache.SyncPeriod = new(r.Settle / 10) // so that it also reconciles while its cache is stale
	mgr, err := manager.New(config, options)
	if err != nil {
		return err
	}
	if err := r.Setup(mgr); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	return mgr.Start(ctx)
}

// failed returns why the manager has ended by itself, nil if it runs.
func (r *running) failed() error {
	select {
	case <-r.ended:
		return fmt.Errorf("the manager has ended by itself: %v", r.err)
	default:
		return nil
	}
}

// stop ends the manager. It ignores the error that the manager returns when it is stopped.
func (r *running) stop() error {
	r.end()
	select {
	case <-r.ended:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("the manager has not ended %s after its context", stopTimeout)
	}
}

// stopTimeout is in virtual time.
const stopTimeout = 5 * time.Minute
