//go:build !snowglobe_light

package controllers

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// tokens is upstream's controller of service-account-token Secrets. kube-controller-manager
// builds it from a key file; here the key is in memory.
type tokens struct {
	*serviceaccountcontroller.TokensController
	workers int
}

func newTokens(ctx context.Context, c app.ControllerContext, builder clients) (app.Controller, error) {
	client, err := kubernetes.NewForConfig(builder.of("system:kube-controller-manager"))
	if err != nil {
		return nil, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, builder.component.ServiceAccountKey)
	if err != nil {
		return nil, err
	}
	core := c.InformerFactory.Core().V1()
	controller, err := serviceaccountcontroller.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: builder.component.CA})
	if err != nil {
		return nil, err
	}
	return tokens{controller, int(c.ComponentConfig.SAController.ConcurrentSATokenSyncs)}, nil
}

// Name implements app.Controller.
func (tokens) Name() string { return names.ServiceAccountTokenController }

// Run implements app.Controller.
func (t tokens) Run(ctx context.Context) { t.TokensController.Run(ctx, t.workers) }
