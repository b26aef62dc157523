// Package adopt is a small part of a controller whose module is pinned to Kubernetes 1.34. Its
// tests run against Snowglobe's API server all the same: the module snowglobe.test/envtest/client
// raises none of its pins.
package adopt

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Annotation names who has adopted a ConfigMap.
const Annotation = "example.com/adopted-by"

// Adopt annotates a ConfigMap of the namespace default, and tries again after a conflict.
func Adopt(ctx context.Context, client kubernetes.Interface, name, by string) error {
	configMaps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := configMaps.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&found.ObjectMeta, Annotation, by)
		_, err = configMaps.Update(ctx, found, metav1.UpdateOptions{})
		return err
	})
}
