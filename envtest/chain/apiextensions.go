package chain

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiserver/pkg/util/webhook"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"

	"snowglobe.test/envtest/chain/egress"
	"snowglobe.test/envtest/chain/inject"
)

type serverConfigs struct {
	kubeapi       kubeAPIConfig
	apiextensions *apiextensionsapiserver.Config
	aggregator    *aggregatorapiserver.Config
}

// buildAPIExtensionsConfig makes the configuration of the server of custom
// resources, with both its storage getters on the chain's store.
func (c *Chain) buildAPIExtensionsConfig(context.Context) error {
	kube := c.configs.kubeapi
	generic := kube.ControlPlane.Generic
	resolve := webhook.NewDefaultAuthenticationInfoResolverWrapper(kube.ControlPlane.ProxyTransport, generic.EgressSelector, generic.LoopbackClientConfig, generic.TracerProvider)
	config, err := controlplaneapiserver.CreateAPIExtensionsConfig(*generic, kube.ControlPlane.VersionedInformers, kube.initializers,
		c.options.CompletedOptions, c.options.MasterCount, kube.resolver,
		func(upstream webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
			return inject.ConfigureWebhooks(resolve(upstream), egress.PastTLSProxies)
		})
	if err != nil {
		return err
	}
	etcd := c.options.Etcd
	config.GenericConfig.RESTOptionsGetter = c.state.storage.Decorate(config.GenericConfig.RESTOptionsGetter, etcd)
	config.ExtraConfig.CRDRESTOptionsGetter = c.state.storage.Decorate(config.ExtraConfig.CRDRESTOptionsGetter, etcd)
	c.configs.apiextensions = config
	return nil
}

// buildAPIExtensions makes the server nearest to the end of the chain.
func (c *Chain) buildAPIExtensions(context.Context) error {
	server, err := c.configs.apiextensions.Complete().New(inject.AnsweredBy(inject.ServerNotFound, c.servers.notFound))
	if err != nil {
		return err
	}
	c.servers.apiextensions = server
	return nil
}

// crdsEnabled says whether --runtime-config left the CRD API on.
func (c *Chain) crdsEnabled() bool {
	return c.configs.apiextensions.GenericConfig.MergedResourceConfig.ResourceEnabled(
		apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
}
