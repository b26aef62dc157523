//go:build !snowglobe_light

package controllers

import (
	"context"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/component"
)

// StartScheduler starts a kube-scheduler with the default profile for a test, and stops it
// when the test ends.
func StartScheduler(t testing.TB, cp *envtest.ControlPlane) *Program {
	t.Helper()
	return newScheduler(cp).startFor(t)
}

// LaunchScheduler is StartScheduler without a test; the caller stops the scheduler, and
// then the control plane.
func LaunchScheduler(ctx context.Context, cp *envtest.ControlPlane) (*Program, error) {
	p := newScheduler(cp)
	return p, p.Start(ctx)
}

func newScheduler(cp *envtest.ControlPlane) *Program {
	p := newProgram(cp, "kube-scheduler")
	p.prepare = func(ctx context.Context, component *component.Component) (func(context.Context), func(context.Context) error, error) {
		return buildScheduler(ctx, clients{component})
	}
	return p
}

func buildScheduler(ctx context.Context, builder clients) (run func(context.Context), ready func(context.Context) error, err error) {
	config := builder.of("system:kube-scheduler")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	untyped, err := dynamic.NewForConfig(builder.component.Config("system:kube-scheduler"))
	if err != nil {
		return nil, nil, err
	}
	informers := scheduler.NewInformerFactory(client, 0, nil)
	dynamicInformers := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, "", nil)
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, client)
	recorder := func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(name) }
	s, err := scheduler.New(ctx, client, informers, dynamicInformers, recorder, scheduler.WithKubeConfig(config))
	if err != nil {
		broadcaster.Shutdown()
		return nil, nil, err
	}
	synced := make(chan error, 1)
	run = func(ctx context.Context) {
		broadcaster.StartRecordingToSink(ctx.Done())
		defer broadcaster.Shutdown()
		informers.Start(ctx.Done())
		dynamicInformers.Start(ctx.Done())
		informers.WaitForCacheSync(ctx.Done())
		dynamicInformers.WaitForCacheSync(ctx.Done())
		synced <- s.WaitForHandlersSync(ctx)
		s.Run(ctx)
		informers.Shutdown()
		dynamicInformers.Shutdown()
	}
	ready = func(ctx context.Context) error {
		select {
		case err := <-synced:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return run, ready, nil
}
