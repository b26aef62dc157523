package bootstrap

// Works around clusterauthenticationtrust.Controller (k8s.io/kubernetes/pkg/controlplane/controller), which
// looks once whether its informer has synced, and then 100 ms later. The linker notices when upstream changes.

import (
	"context"
	"fmt"
	_ "unsafe" // for go:linkname

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust"
)

// AuthenticationInfoHook is upstream's name of the hook that AuthenticationInfo wraps.
const AuthenticationInfoHook = "start-cluster-authentication-info-controller"

// authenticationInfoName is upstream's name of the ConfigMap in kube-system.
const authenticationInfoName = "extension-apiserver-authentication"

//go:linkname getConfigMapDataFor k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust.getConfigMapDataFor
func getConfigMapDataFor(info clusterauthenticationtrust.ClusterAuthenticationInfo) (map[string]string, error)

//go:linkname createNamespaceIfNeeded k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust.createNamespaceIfNeeded
func createNamespaceIfNeeded(client corev1client.NamespacesGetter, name string) error

// AuthenticationInfo lets its hook write the ConfigMap by which aggregated API servers know the front
// proxy, if there is none: they do not start without it. With upstream it is there long before a server
// is ready, because other hooks take a second. If it can't be written, the controller tries.
func AuthenticationInfo(
	hook genericapiserver.PostStartHookFunc, info clusterauthenticationtrust.ClusterAuthenticationInfo,
) genericapiserver.PostStartHookFunc {
	return func(ctx genericapiserver.PostStartHookContext) error {
		if err := hook(ctx); err != nil {
			return err
		}
		client, err := corev1client.NewForConfig(ctx.LoopbackClientConfig)
		if err != nil {
			return fmt.Errorf("unable to write the authentication info: %w", err)
		}
		if err := writeAuthenticationInfo(ctx, client, info); err != nil && !apierrors.IsAlreadyExists(err) {
			utilruntime.HandleErrorWithContext(ctx, err, "Could not write the authentication info at boot")
		}
		return nil
	}
}

func writeAuthenticationInfo(
	ctx context.Context, client corev1client.CoreV1Interface, info clusterauthenticationtrust.ClusterAuthenticationInfo,
) error {
	data, err := getConfigMapDataFor(info)
	if err != nil {
		return err
	}
	if err := createNamespaceIfNeeded(client, metav1.NamespaceSystem); err != nil {
		return err
	}
	_, err = client.ConfigMaps(metav1.NamespaceSystem).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: authenticationInfoName}, Data: data,
	}, metav1.CreateOptions{})
	return err
}
