package controller

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllerruntime"

	snowv1 "example.com/operator/api/v1"
)

// TestFaults crashes the controller at each of its API calls, loses their answers and makes
// its caches stale: whatever happens, the flakes are the same at the end.
func TestFaults(t *testing.T) {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = snowv1.AddToScheme(scheme)
	controllerruntime.Sweep{
		Options: []envtest.Option{envtest.WithCRDPaths("../../config/crd/bases")},
		Manager: manager.Options{Scheme: scheme},
		Setup:   func(mgr ctrl.Manager) error { return (&SnowfallReconciler{mgr.GetClient()}).SetupWithManager(mgr) },
		Steps: []func(context.Context, client.Client) error{
			func(ctx context.Context, c client.Client) error {
				return c.Create(ctx, &snowv1.Snowfall{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default"}, Spec: snowv1.SnowfallSpec{Flakes: 2}})
			},
		},
		Lists: []client.ObjectList{&snowv1.SnowfallList{}, &corev1.ConfigMapList{}},
	}.Test(t)
}
