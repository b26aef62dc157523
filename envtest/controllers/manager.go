//go:build !snowglobe_light

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/component"
	"snowglobe.test/internal/nearest"
)

// Default are the controllers that run if none are named: those that need only an API
// server and nodes. kube-controller-manager's other controllers can be named.
var Default = []string{
	names.ClusterRoleAggregationController,
	names.CronJobController,
	names.DaemonSetController,
	names.DeploymentController,
	names.DisruptionController,
	names.EndpointSliceController,
	names.EndpointSliceMirroringController,
	names.EndpointsController,
	names.EphemeralVolumeController,
	names.GarbageCollectorController,
	names.HorizontalPodAutoscalerController,
	names.JobController,
	names.NamespaceController,
	names.NodeLifecycleController,
	names.PersistentVolumeBinderController,
	names.PersistentVolumeClaimProtectionController,
	names.PersistentVolumeProtectionController,
	names.PodGarbageCollectorController,
	names.ReplicaSetController,
	names.ReplicationControllerController,
	names.ResourceClaimController,
	names.ResourceQuotaController,
	names.RootCACertificatePublisherController,
	names.ServiceAccountController,
	names.ServiceAccountTokenController,
	names.ServiceCIDRController,
	names.StatefulSetController,
	names.TTLAfterFinishedController,
	names.TTLController,
	names.TaintEvictionController,
	names.ValidatingAdmissionPolicyStatusController,
	names.VolumeAttributesClassProtectionController,
}

// Start starts controllers of kube-controller-manager for a test, the Default ones if none
// are named, and stops them when the test ends. Names are those that kube-controller-manager's
// --controllers flag takes, including old ones: "deployment-controller" or "deployment". As there,
// "-deployment" is without one, and "*", or "default", stands for the Default ones.
func Start(t testing.TB, cp *envtest.ControlPlane, controllers ...string) *Program {
	t.Helper()
	p, err := newManager(cp, controllers)
	if err != nil {
		t.Fatal(err)
	}
	return p.startFor(t)
}

// Launch is Start without a test; the caller stops the controllers, and then the control
// plane.
func Launch(ctx context.Context, cp *envtest.ControlPlane, controllers ...string) (*Program, error) {
	p, err := newManager(cp, controllers)
	if err != nil {
		return nil, err
	}
	return p, p.Start(ctx)
}

// Check returns an error if kube-controller-manager has no controller with one of the names.
func Check(controllers ...string) error {
	_, err := canonical(controllers)
	return err
}

// MakeServiceAccounts reports whether one of the controllers, of the Default ones if none are
// named, makes the service account "default" of each namespace.
func MakeServiceAccounts(controllers ...string) bool {
	named, err := canonical(controllers)
	return err == nil && slices.Contains(named, names.ServiceAccountController)
}

func newManager(cp *envtest.ControlPlane, controllers []string) (*Program, error) {
	named, err := canonical(controllers)
	if err != nil {
		return nil, err
	}
	p := newProgram(cp, "kube-controller-manager")
	p.prepare = func(ctx context.Context, component *component.Component) (func(context.Context), func(context.Context) error, error) {
		m, err := buildManager(ctx, component, named)
		if err != nil {
			return nil, nil, err
		}
		return m.run, m.ready, nil
	}
	return p, nil
}

// canonical returns upstream's names of controllers: it resolves old names, "*" and "-name".
func canonical(controllers []string) ([]string, error) {
	if len(controllers) == 0 {
		return Default, nil
	}
	var wanted, without []string
	for _, name := range controllers {
		named, removed := strings.CutPrefix(name, "-")
		switch {
		case name == "*" || name == "default":
			wanted = append(wanted, Default...)
			continue
		case app.ControllerAliases()[named] != "":
			named = app.ControllerAliases()[named]
		case !slices.Contains(app.KnownControllers(), named):
			return nil, fmt.Errorf("kube-controller-manager has no controller %q%s", named, others(named, app.KnownControllers(), app.ControllerAliases()))
		}
		if removed {
			without = append(without, named)
		} else {
			wanted = append(wanted, named)
		}
	}
	var canonical []string
	for _, name := range wanted {
		if !slices.Contains(without, name) && !slices.Contains(canonical, name) {
			canonical = append(canonical, name)
		}
	}
	if len(canonical) == 0 {
		return nil, fmt.Errorf("%s names no controller to run; begin with *, or name one", strings.Join(controllers, ","))
	}
	return canonical, nil
}

// others ends the error about an unknown name with the names that come near it, or with all.
func others(name string, known []string, aliases map[string]string) string {
	if near := nearest.DidYouMean(name, append(slices.Collect(maps.Keys(aliases)), known...)); near != "" {
		return near
	}
	return "; there are " + strings.Join(known, ", ")
}

// manager is one run of controllers on informers that they share.
type manager struct {
	context     app.ControllerContext
	controllers []app.Controller
}

func buildManager(ctx context.Context, of *component.Component, named []string) (*manager, error) {
	builder := clients{of}
	m := &manager{}
	var err error
	if m.context, err = controllerContext(ctx, builder, named); err != nil {
		return nil, err
	}
	if slices.Contains(named, names.ServiceAccountTokenController) {
		tokens, err := newTokens(ctx, m.context, builder)
		if err != nil {
			return nil, err
		}
		m.controllers = append(m.controllers, tokens)
	}
	if slices.Contains(named, names.ResourceQuotaController) {
		m.controllers = append(m.controllers, quota{m.context})
	}
	built, err := app.BuildControllers(ctx, m.context, app.NewControllerDescriptors(), nil, noHealth{})
	m.controllers = append(m.controllers, built...)
	return m, err
}

// controllerContext is what app.CreateControllerContext makes, but its informers have no name:
// upstream gives them one that can be used only once in a process, and there may be several
// managers.
func controllerContext(ctx context.Context, builder clients, named []string) (app.ControllerContext, error) {
	config, err := options.NewDefaultComponentConfig()
	if err != nil {
		return app.ControllerContext{}, err
	}
	config.Generic.Controllers = slices.DeleteFunc(slices.Clone(named), func(name string) bool { return name == names.ResourceQuotaController })
	root := builder.of("system:kube-controller-manager", "system:masters")
	client, clientErr := kubernetes.NewForConfig(root)
	metadataClient, metadataErr := metadata.NewForConfig(root)
	if err := errors.Join(clientErr, metadataErr); err != nil {
		return app.ControllerContext{}, err
	}
	resync := func() time.Duration {
		return time.Duration(float64(config.Generic.MinResyncPeriod.Duration) * (1 + rand.Float64()))
	}
	typed := informers.NewSharedInformerFactoryWithOptions(client, resync(), informers.WithTransform(withoutManagedFields))
	untyped := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resync(), metadatainformer.WithTransform(withoutManagedFields))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	go wait.Until(mapper.Reset, 30*time.Second, ctx.Done())
	c := app.ControllerContext{
		ClientBuilder:                   builder,
		InformerFactory:                 typed,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(typed, untyped),
		ComponentConfig:                 config,
		RESTMapper:                      mapper,
		InformersStarted:                make(chan struct{}),
		ResyncPeriod:                    resync,
		ControllerManagerMetrics:        controllersmetrics.NewControllerManagerMetrics("kube-controller-manager"),
	}
	if slices.Contains(named, names.GarbageCollectorController) {
		c.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(ctx, metadataClient, mapper, garbagecollector.DefaultIgnoredResources(), c.ObjectOrMetadataInformerFactory, c.InformersStarted)
	}
	return c, nil
}

// withoutManagedFields saves memory, as upstream does.
func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// run runs the controllers until the context ends.
func (m *manager) run(ctx context.Context) {
	m.context.InformerFactory.Start(ctx.Done())
	m.context.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(m.context.InformersStarted)
	app.RunControllers(ctx, m.context, m.controllers, app.ControllerStartJitter, 0)
	m.context.InformerFactory.Shutdown()
}

// ready returns when the informers have seen what there is.
func (m *manager) ready(ctx context.Context) error {
	select {
	case <-m.context.InformersStarted:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for informer, synced := range m.context.InformerFactory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the informer of %s has not seen the state: %w", informer, context.Cause(ctx))
		}
	}
	return nil
}

// noHealth keeps no health checks: nothing serves them.
type noHealth struct{}

// AddHealthChecker implements app.HealthCheckAdder.
func (noHealth) AddHealthChecker(...healthz.HealthChecker) {}
