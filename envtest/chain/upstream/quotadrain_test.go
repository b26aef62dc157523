package upstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// quotaServer is what a server has that is about quotas. Its informer never
// runs, so that the plugin asks the server, which answers when asked is received.
type quotaServer struct {
	config *genericapiserver.Config
	plugin admission.ValidationInterface
	asked  chan struct{}
}

func newQuotaServer(t *testing.T, delay func(*genericapiserver.Config) (func(), error), decorate admission.DecoratorFunc) *quotaServer {
	s := &quotaServer{config: genericapiserver.NewConfig(codecs()), asked: make(chan struct{})}
	client := fake.NewClientset()
	client.PrependReactor("list", "resourcequotas", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.asked <- struct{}{}
		return false, nil, nil
	})
	plugin, err := resourcequota.NewResourceQuota(nil, 1)
	require.NoError(t, err)
	restore, err := delay(s.config)
	require.NoError(t, err)
	plugin.SetDrainedNotification(s.config.DrainedNotify())
	restore()
	plugin.SetExternalKubeClientSet(client)
	factory := informers.NewSharedInformerFactory(client, 0)
	plugin.SetExternalKubeInformerFactory(factory)
	counted := generic.NewObjectCountEvaluator(corev1.Resource("configmaps"), nil, corev1.ResourceConfigMaps)
	plugin.SetQuotaConfiguration(generic.NewConfiguration([]quota.Evaluator{counted}, nil))
	require.NoError(t, plugin.ValidateInitialization())
	s.plugin = decorate(plugin, "ResourceQuota").(admission.ValidationInterface)
	return s
}

func (s *quotaServer) drain() {
	_ = ReplaceSignals(s.config, func(s LifecycleSignal) LifecycleSignal {
		if s.Name() == InFlightRequestsDrained {
			s.Signal()
		}
		return s
	})
}

func (s *quotaServer) create(namespace string) error {
	attributes := admission.NewAttributesRecord(&corev1.ConfigMap{}, nil, corev1.SchemeGroupVersion.WithKind("ConfigMap"), namespace, "a",
		corev1.SchemeGroupVersion.WithResource("configmaps"), "", admission.Create, nil, false, nil)
	return s.plugin.Validate(context.Background(), attributes, nil)
}

// latePlugin comes to upstream's plugin when it is let.
type latePlugin struct {
	admission.ValidationInterface
	let <-chan struct{}
}

func (p *latePlugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	<-p.let
	return p.ValidationInterface.Validate(ctx, a, o)
}

// TestQuotaDrain drains a server while two creates are under way, one that is
// evaluated and one that comes to it after the drain. A third begins after it.
func TestQuotaDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain, let := NewQuotaDrain(), make(chan struct{})
		s := newQuotaServer(t, drain.Delay, func(plugin admission.Interface, name string) admission.Interface {
			drained := drain.Decorate(plugin, name).(*drainedQuota)
			drained.ValidationInterface = &latePlugin{drained.ValidationInterface, let}
			return drained
		})
		began := time.Now()
		answers := make(chan error, 2)
		create := func(namespace string) {
			go func() { answers <- s.create(namespace) }()
			synctest.Wait()
		}
		create("first")
		let <- struct{}{}
		synctest.Wait()
		create("second")
		s.drain()
		synctest.Wait()
		assert.True(t, apierrors.IsServiceUnavailable(s.create("third")))
		<-s.asked
		synctest.Wait()
		assert.NoError(t, <-answers)
		let <- struct{}{}
		<-s.asked
		assert.NoError(t, <-answers)
		assert.Zero(t, time.Since(began))
	})
}

// TestQuotaWithoutDrain shows why there is a QuotaDrain: upstream's plugin alone.
func TestQuotaWithoutDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newQuotaServer(t, func(*genericapiserver.Config) (func(), error) { return func() {}, nil },
			func(plugin admission.Interface, _ string) admission.Interface { return plugin })
		s.drain()
		synctest.Wait()
		began := time.Now()
		assert.ErrorContains(t, s.create("first"), "resource quota evaluation timed out")
		assert.Equal(t, 10*time.Second, time.Since(began))
	})
}
