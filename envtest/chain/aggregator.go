package chain

import (
	"context"
	"errors"
	_ "unsafe" // for go:linkname

	"k8s.io/apimachinery/pkg/runtime/schema"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app" // declares apiVersionPriorities
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"

	"snowglobe.test/envtest/chain/inject"
)

// buildAggregatorConfig makes the configuration of the head of the chain.
func (c *Chain) buildAggregatorConfig(context.Context) error {
	kube := c.configs.kubeapi.ControlPlane
	config, err := controlplaneapiserver.CreateAggregatorConfig(*kube.Generic, c.options.CompletedOptions, kube.VersionedInformers,
		c.configs.kubeapi.resolver, kube.ProxyTransport, kube.Extra.PeerProxy, c.configs.kubeapi.initializers)
	if err != nil {
		return err
	}
	config.GenericConfig.RESTOptionsGetter = c.state.storage.Decorate(config.GenericConfig.RESTOptionsGetter, c.options.Etcd)
	c.configs.aggregator = config
	return nil
}

// buildAggregator makes the head of the chain, which every request enters.
func (c *Chain) buildAggregator(context.Context) (err error) {
	forget, err := c.lendFrontProxy()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, forget()) }()
	target := inject.AnsweredBy(inject.ServerKubeAPI, c.servers.kubeapi.ControlPlane.GenericAPIServer)
	server, err := controlplaneapiserver.CreateAggregatorServer(c.configs.aggregator.Complete(), target,
		c.autoregistering.CRDs(c.servers.apiextensions.Informers.Apiextensions().V1().CustomResourceDefinitions()), c.crdsEnabled(), apiVersionPriorities)
	if err != nil {
		return err
	}
	c.servers.aggregator = server
	return c.observeState()
}

// apiVersionPriorities is upstream's order of the built-in groups in discovery.
// Upstream does not export it, and builds its aggregator only together with the
// servers behind it, which the chain must wrap to see which of them answers.
//
//go:linkname apiVersionPriorities k8s.io/kubernetes/cmd/kube-apiserver/app.apiVersionPriorities
var apiVersionPriorities map[schema.GroupVersion]controlplaneapiserver.APIServicePriority
