//go:build !snowglobe_light

package controllers

import (
	"context"
	"reflect"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/quota/v1/install"
)

// resourcesPeriod is how often kube-controller-manager looks for new resources.
const resourcesPeriod = 30 * time.Second

// quota is upstream's controller of resource quotas, made anew whenever there are new
// resources. Upstream changes the one it has, and waits for new informers while it holds a
// lock that workers want: in virtual time, which can't see locks, that wait has no end.
type quota struct {
	context app.ControllerContext
}

// Name implements app.Controller.
func (quota) Name() string { return names.ResourceQuotaController }

// Run implements app.Controller.
func (q quota) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := q.untilNewResources(ctx); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Resource quotas are not counted for a second")
		}
	}, time.Second)
}

// untilNewResources counts quotas until the context ends or the resources have changed.
func (q quota) untilNewResources(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	discovery, err := q.context.ClientBuilder.DiscoveryClient(names.ResourceQuotaController)
	if err != nil {
		return err
	}
	known, err := resourcequota.GetQuotableResources(discovery.ServerPreferredNamespacedResources)
	if err != nil {
		return err
	}
	run, err := q.build(ctx, discovery.ServerPreferredNamespacedResources)
	if err != nil {
		return err
	}
	work.Go(func() { run(ctx) })
	err = wait.PollUntilContextCancel(ctx, resourcesPeriod, false, func(context.Context) (bool, error) {
		now, err := resourcequota.GetQuotableResources(discovery.ServerPreferredNamespacedResources)
		return err == nil && !reflect.DeepEqual(known, now), nil
	})
	if wait.Interrupted(err) {
		return nil
	}
	return err
}

// build makes the controller, with informers of its own, which end with it.
func (q quota) build(ctx context.Context, resources resourcequota.NamespacedResourcesFunc) (run func(context.Context), err error) {
	client, err := q.context.NewClient(names.ResourceQuotaController)
	if err != nil {
		return nil, err
	}
	config, err := q.context.NewClientConfig(names.ResourceQuotaController)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	typed := informers.NewSharedInformerFactory(client, q.context.ResyncPeriod())
	both := informerfactory.NewInformerFactory(typed, metadatainformer.NewSharedInformerFactory(metadataClient, q.context.ResyncPeriod()))
	evaluators, err := install.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(typed.ForResource), typed)
	if err != nil {
		return nil, err
	}
	settings := q.context.ComponentConfig.ResourceQuotaController
	started := make(chan struct{})
	counting, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     typed.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(settings.ResourceQuotaSyncPeriod.Duration),
		InformerFactory:           both,
		ReplenishmentResyncPeriod: q.context.ResyncPeriod,
		DiscoveryFunc:             resources,
		IgnoredResourcesFunc:      evaluators.IgnoredResources,
		InformersStarted:          started,
		Registry:                  generic.NewRegistry(evaluators.Evaluators()),
		UpdateFilter:              install.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		typed.Start(ctx.Done())
		both.Start(ctx.Done())
		close(started)
		counting.Run(ctx, int(settings.ConcurrentResourceQuotaSyncs))
		typed.Shutdown()
	}, nil
}
