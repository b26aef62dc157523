package chain

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/server/egressselector"
	kubeauthorizer "k8s.io/kubernetes/pkg/kubeapiserver/authorizer"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"

	"snowglobe.test/envtest/chain/upstream"
)

// applyAuthorization is upstream's BuildAuthorizer, but for who looks at the file of
// --authorization-config.
func (c *Chain) applyAuthorization(g *genericStage) error {
	config, err := c.options.Authorization.ToAuthorizationConfig(patientInformers{g.informers, c.life.Done()})
	if err != nil {
		return fmt.Errorf("invalid authorization config: %w", err)
	}
	if config == nil {
		return nil
	}
	if g.config.EgressSelector != nil {
		if config.CustomDial, err = g.config.EgressSelector.Lookup(egressselector.ControlPlane.AsNetworkContext()); err != nil {
			return fmt.Errorf("invalid authorization config: %w", err)
		}
	}
	if err := c.makeAuthorizer(drained(g.config), g, config); err != nil {
		return fmt.Errorf("invalid authorization config: %w", err)
	}
	isRBAC := func(a apiserver.AuthorizerConfiguration) bool { return string(a.Type) == modes.ModeRBAC }
	if !slices.ContainsFunc(config.AuthorizationConfiguration.Authorizers, isRBAC) {
		g.config.DisabledPostStartHooks.Insert(rbacrest.PostStartHookName)
	}
	return nil
}

func (c *Chain) makeAuthorizer(ctx context.Context, g *genericStage, config *kubeauthorizer.Config) error {
	file := config.ReloadFile
	config.ReloadFile = ""
	var err error
	g.config.Authorization.Authorizer, g.config.RuleResolver, err = config.New(ctx, g.config.APIServerID)
	c.caches.Add("authorizer", g.config.Authorization.Authorizer)
	if err != nil || file == "" {
		return err
	}
	return upstream.ReloadAuthorization(ctx, g.config.Authorization.Authorizer, file,
		config.InitialAuthorizationConfigurationData, g.config.APIServerID, reloadInterval)
}
