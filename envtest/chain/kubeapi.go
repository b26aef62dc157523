package chain

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/controlplane"

	"snowglobe.test/envtest/chain/egress"
	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/chain/upstream"
)

// kubeAPIConfig is the kube-apiserver's configuration, with what the others need.
type kubeAPIConfig struct {
	*controlplane.Config
	resolver     apiserver.ServiceResolver
	initializers []admission.PluginInitializer
}

// buildKubeAPIConfig makes the kube-apiserver's configuration: capabilities,
// service range, proxy transport, service resolver, admission.
func (c *Chain) buildKubeAPIConfig(context.Context) error {
	restore, err := c.quota.Delay(c.generic.config)
	if err != nil {
		return err
	}
	defer restore()
	config, resolver, initializers, err := app.CreateKubeAPIServerConfig(c.options, c.generic.config, c.generic.informers, c.generic.storageFactory)
	if err != nil {
		return err
	}
	egress.NameProxies(config.ControlPlane.ProxyTransport)
	if extra := &config.ControlPlane.Extra; extra.PeerEndpointLeaseReconciler != nil {
		c.peerLease = upstream.NewPeerLease(extra.PeerEndpointLeaseReconciler, c.renewals, c.cfg.Connection.Err)
		extra.PeerEndpointLeaseReconciler = c.peerLease
	}
	c.configs.kubeapi = kubeAPIConfig{Config: config, resolver: resolver, initializers: initializers}
	c.publishFrontProxy(config)
	return nil
}

// buildKubeAPI makes the server in the middle of the chain: /api and /apis.
func (c *Chain) buildKubeAPI(context.Context) error {
	target := inject.AnsweredBy(inject.ServerAPIExtensions, c.servers.apiextensions.GenericAPIServer)
	completed := c.configs.kubeapi.Complete()
	reconciler := &completed.Extra.EndpointReconcilerConfig.Reconciler
	c.endpoints = upstream.NewEndpoints(c.life, *reconciler, c.cfg.Connection.Err)
	*reconciler = c.endpoints
	completed.ControlPlane.Generic.SkipOpenAPIInstallation = true // see installOpenAPI
	server, err := completed.New(target)
	if err != nil {
		return err
	}
	c.servers.kubeapi = server
	return nil
}
