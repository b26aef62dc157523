package bootstrap

// Works around defaultservicecidr.Controller (k8s.io/kubernetes/pkg/controlplane/controller), whose Start
// waits 100 ms. TestBootHooks of envtest notices when upstream has no such hook.

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	networkingclient "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr"
)

// ServiceCIDRHook is upstream's name of the hook that ServiceCIDR wraps.
const ServiceCIDRHook = "start-kubernetes-service-cidr-controller"

// ServiceCIDR lets a boot go on as soon as there is the default ServiceCIDR of these ranges, which is
// what its hook waits for. The hook looks at an informer at once, and then 100 ms later, and creates
// what is missing only then.
func ServiceCIDR(hook genericapiserver.PostStartHookFunc, ranges ...string) genericapiserver.PostStartHookFunc {
	return func(ctx genericapiserver.PostStartHookContext) error {
		client, err := networkingclient.NewForConfig(ctx.LoopbackClientConfig)
		if err != nil {
			return fmt.Errorf("unable to look for the default ServiceCIDR: %w", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- hook(ctx) }()
		if ensureServiceCIDR(ctx, client.ServiceCIDRs(), ranges) == nil {
			return nil
		}
		return <-ended
	}
}

func ensureServiceCIDR(ctx context.Context, client networkingclient.ServiceCIDRInterface, ranges []string) error {
	name := defaultservicecidr.DefaultServiceCIDRName
	_, err := client.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = client.Create(ctx, &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges},
	}, metav1.CreateOptions{})
	return err
}
