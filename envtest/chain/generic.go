package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	aggregated "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericfeatures "k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/openapi"
	clientgoinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"

	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/upstream"
)

// informerResync is upstream's resync period of the shared informers.
const informerResync = 10 * time.Minute

// genericStage is what the generic stage makes for all servers of the chain.
type genericStage struct {
	config         *genericapiserver.Config
	client         *kubernetes.Clientset
	informers      clientgoinformers.SharedInformerFactory
	storageFactory *serverstorage.DefaultStorageFactory
	monitor        storeMonitor
}

// buildGeneric makes the configuration that the servers share, in upstream's order.
func (c *Chain) buildGeneric(ctx context.Context) error {
	g := &genericStage{config: genericapiserver.NewConfig(codecs())}
	c.generic = g
	if err := c.injectSignals(g.config); err != nil {
		return err
	}
	if c.cfg.OwnIdentity && g.config.APIServerID != "" {
		g.config.APIServerID = upstream.ServerID(c.cfg.Server)
	}
	g.config.Flagz = c.options.Flagz
	g.config.MergedResourceConfig = controlplane.DefaultAPIResourceConfigSource()
	upstream.ReplaceLogCheck(g.config)
	steps := []struct {
		name string
		do   func(*genericStage) error
	}{
		{"serving", c.applyServing},
		{"loopback client", c.applyLoopbackClient},
		{"enablement", c.applyEnablement},
		{"egress selector", c.applyEgress},
		{"OpenAPI", c.applyOpenAPI},
		{"storage factory", c.applyStorage},
		{"authentication", c.applyAuthentication},
		{"certificates", c.pollCertificates},
		{"authorization", c.applyAuthorization},
		{"audit", c.applyAudit},
	}
	for _, step := range steps {
		if err := step.do(g); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	g.config.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	filters := c.caches.HandlerChain(c.requests.HandlerChain(g.config.BuildHandlerChainFunc))
	g.config.BuildHandlerChainFunc = func(api http.Handler, config *genericapiserver.Config) http.Handler {
		api = c.documents.BeforeAggregator(inject.APIServices(api, c.injector, c.apiService), func() error {
			return upstream.FetchOpenAPI(c.servers.aggregator)
		})
		return filters(api, config)
	}
	return nil
}

// apiService returns an APIService as the aggregator knows it.
func (c *Chain) apiService(name string) (*apiregistrationv1.APIService, error) {
	return c.servers.aggregator.APIRegistrationInformers.Apiregistration().V1().APIServices().Lister().Get(name)
}

// codecs adds CBOR only if its feature gate is on: apiextensions refuses it otherwise.
func codecs() serializer.CodecFactory {
	if utilfeature.DefaultFeatureGate.Enabled(genericfeatures.CBORServingAndStorage) {
		return serializer.NewCodecFactory(legacyscheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))
	}
	return legacyscheme.Codecs
}

func (c *Chain) applyServing(g *genericStage) error {
	if err := c.options.GenericServerRunOptions.ApplyTo(g.config); err != nil {
		return err
	}
	g.config.EffectiveVersion = linkedVersion{g.config.EffectiveVersion}
	return c.options.SecureServing.SecureServingOptions.ApplyTo(&g.config.SecureServing)
}

// applyLoopbackClient makes the privileged client by which the server talks to
// itself. Upstream's goes through TLS with a certificate of its own; this one calls
// the handler chain directly, as the same user, by a token.
func (c *Chain) applyLoopbackClient(g *genericStage) error {
	transport := upstream.BreakOffIdentityLease(c.cfg.Endpoint.Loopback(), c.renewals)
	if c.cfg.Flags.withoutHousekeeping {
		transport = longWatches{transport}
	}
	g.config.LoopbackClientConfig = &rest.Config{
		Host:               "https://" + c.cfg.Endpoint.Addr().String(),
		BearerToken:        uuid.NewString(),
		UserAgent:          loopbackUserAgent(),
		QPS:                -1, // as upstream's: no client-side throttling
		Burst:              -1,
		Transport:          inject.Informers(c.polling.CacheIndex(transport), c.injector, genericapiserver.NewRequestInfoResolver(g.config)),
		ContentConfig:      rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf},
		WarningHandler:     rest.NoWarnings{},
		DisableCompression: true,
	}
	var err error
	if g.client, err = kubernetes.NewForConfig(g.config.LoopbackClientConfig); err != nil {
		return err
	}
	g.informers = upstream.LastingInformers(clientgoinformers.NewSharedInformerFactoryWithOptions(g.client, informerResync,
		clientgoinformers.WithTransform(trimManagedFields), clientgoinformers.WithInformerName(c.informerName)))
	return c.options.Features.ApplyTo(g.config, g.client, g.informers)
}

func trimManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

func (c *Chain) applyEnablement(g *genericStage) error {
	err := c.options.APIEnablement.ApplyTo(g.config, controlplane.DefaultAPIResourceConfigSource(), legacyscheme.Scheme)
	if err == nil && !g.config.MergedResourceConfig.ResourceEnabled(corev1.SchemeGroupVersion.WithResource("namespaces")) {
		return errors.New("--runtime-config turns off api/v1, and without it a kube-apiserver never gets ready; " +
			"add api/v1=true")
	}
	return err
}

func (c *Chain) applyEgress(g *genericStage) error {
	if err := c.options.EgressSelector.ApplyTo(g.config); err != nil {
		return err
	}
	if err := c.injectEgress(g.config); err != nil {
		return err
	}
	return c.options.Traces.ApplyTo(g.config.EgressSelector, g.config)
}

func (c *Chain) applyOpenAPI(g *genericStage) error {
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	if !c.cfg.OwnDocuments {
		definitions = sharedDefinitions(definitions)
	}
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme)
	g.config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	g.config.OpenAPIConfig.Info.Title = "Kubernetes"
	g.config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	g.config.OpenAPIV3Config.Info.Title = "Kubernetes"
	g.config.LongRunningFunc = filters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"),
		sets.NewString("attach", "exec", "proxy", "log", "portforward"),
	)
	return nil
}

func (c *Chain) applyStorage(g *genericStage) error {
	etcd := c.options.Etcd
	etcd.StorageConfig.Transport.EgressLookup = g.config.EgressSelector.Lookup
	etcd.StorageConfig.Transport.TracerProvider = g.config.TracerProvider

	client, err := c.cfg.Store.Client()
	if err != nil {
		return err
	}
	g.monitor = storeMonitor{client}
	c.state.storage = reststorage.New(reststorage.Config{
		Connection:           c.cfg.Connection,
		Client:               client,
		Injector:             c.injector,
		Writes:               c.cfg.Restorer,
		ServerList:           etcd.StorageConfig.Transport.ServerList,
		CompactionInterval:   etcd.StorageConfig.CompactionInterval,
		EventsHistoryWindows: c.cfg.CacheWindows,
		InterceptCache:       c.interceptCache,
		AfterWrite:           c.afterWrite(),
	})
	plain := len(etcd.EtcdServersOverrides) == 0
	if plain {
		etcd.StorageConfig.CompactionInterval = 0 // the shared compactor does it
	}

	factoryConfig := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(g.config.EffectiveVersion)
	factoryConfig.APIResourceConfig = g.config.MergedResourceConfig
	factoryConfig.DefaultResourceEncoding.SetEffectiveVersion(g.config.EffectiveVersion)
	if g.storageFactory, err = factoryConfig.Complete(etcd).New(); err != nil {
		return err
	}
	g.storageFactory.StorageConfig.StorageObjectCountTracker = g.config.StorageObjectCountTracker

	// Upstream adds the health checks of overrides and of encryption together with its two
	// for etcd. So these two are replaced only if neither overrides nor encryption are set.
	if plain && etcd.EncryptionProviderConfigFilepath == "" {
		etcd.SkipHealthEndpoints = true
		c.state.storage.AddHealthChecks(g.config, etcd)
	}
	if err := etcd.ApplyWithStorageFactoryTo(g.storageFactory, g.config); err != nil {
		return err
	}
	g.config.RESTOptionsGetter = c.state.storage.Decorate(g.config.RESTOptionsGetter, etcd)
	return nil
}

func (c *Chain) applyAuthentication(g *genericStage) error {
	err := withoutFile(c.options.Authentication).ApplyTo(drained(g.config), &g.config.Authentication, g.config.SecureServing,
		g.config.EgressSelector, g.config.OpenAPIConfig, g.config.OpenAPIV3Config, g.client, g.informers, g.config.APIServerID)
	if err != nil {
		return err
	}
	if err := c.applyJWT(g); err != nil {
		return err
	}
	if err := c.applyFrontProxy(g); err != nil {
		return err
	}
	c.caches.Add("authenticator", g.config.Authentication.Authenticator)
	g.config.Authentication.Authenticator = inject.Authentication(withTokens(c.cfg.Tokens, g.config.Authentication.Authenticator), c.injector)
	return nil
}

func (c *Chain) applyAudit(g *genericStage) error {
	err := c.options.Audit.ApplyTo(g.config)
	c.auditLogs = upstream.AuditLogs(g.config.AuditBackend)
	return err
}

func drained(config *genericapiserver.Config) context.Context {
	return wait.ContextForChannel(config.DrainedNotify())
}
