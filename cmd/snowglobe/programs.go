package main

import (
	"context"
	"errors"
	"fmt"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllers"
	"snowglobe.test/envtest/nodes"
)

// programs run beside the API server of "up".
type programs struct {
	running []*controllers.Program
	nodes   *nodes.Nodes // nil for none
}

// startPrograms starts what the flags ask for. If it fails, nothing is left.
func startPrograms(ctx context.Context, cp *envtest.ControlPlane, opts upOptions) (*programs, error) {
	p := &programs{}
	late := fmt.Errorf("not within %s; --start-timeout gives it longer", opts.startTimeout)
	starting, cancel := context.WithTimeoutCause(ctx, opts.startTimeout, late)
	defer cancel()
	if err := p.start(starting, cp, opts); err != nil {
		if context.Cause(starting) == late && !errors.Is(err, late) {
			err = fmt.Errorf("%w: %w", err, late)
		}
		return nil, errors.Join(err, p.stop(context.WithoutCancel(ctx)))
	}
	return p, nil
}

func (p *programs) start(ctx context.Context, cp *envtest.ControlPlane, opts upOptions) error {
	if opts.controllers != nil {
		manager, err := controllers.Launch(ctx, cp, opts.controllers...)
		if err != nil {
			return err
		}
		p.running = append(p.running, manager)
	}
	if opts.nodes == 0 {
		return nil
	}
	scheduler, err := controllers.LaunchScheduler(ctx, cp)
	if err != nil {
		return err
	}
	p.running = append(p.running, scheduler)
	p.nodes, err = nodes.Launch(ctx, cp.Config(), nodes.Config{Count: opts.nodes, Volumes: true})
	return err
}

// stop stops all, and returns why one has crashed.
func (p *programs) stop(ctx context.Context) error {
	if p.nodes != nil {
		p.nodes.Stop()
	}
	var errs []error
	for _, program := range p.running {
		errs = append(errs, program.Stop(ctx), program.Err())
	}
	return errors.Join(errs...)
}
