package controller

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllerruntime"

	snowv1 "example.com/operator/api/v1"
)

// sweep puts a reconciler through a crash at each of its API calls, lost answers and stale
// caches, and compares the flakes at the end.
func sweep(reconciler func(client.Client) reconcile.Reconciler) controllerruntime.Sweep {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = snowv1.AddToScheme(scheme)
	return controllerruntime.Sweep{
		Options: []envtest.Option{envtest.WithCRDPaths("../../config/crd/bases")},
		Manager: manager.Options{Scheme: scheme},
		Setup: func(mgr ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(&snowv1.Snowfall{}).Owns(&corev1.ConfigMap{}).Complete(reconciler(mgr.GetClient()))
		},
		Steps: []func(context.Context, client.Client) error{
			func(ctx context.Context, c client.Client) error {
				return c.Create(ctx, &snowv1.Snowfall{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default"}, Spec: snowv1.SnowfallSpec{Flakes: 2}})
			},
		},
		Lists: []client.ObjectList{&snowv1.SnowfallList{}, &corev1.ConfigMapList{}},
	}
}

// TestFaults finds nothing: whatever happens, the flakes are the same at the end.
func TestFaults(t *testing.T) {
	sweep(func(c client.Client) reconcile.Reconciler { return &SnowfallReconciler{c} }).Test(t)
}

// TestFaultsFindBug has a reconciler that counts a flake before it falls, as one might
// write it first. All is well, unless it dies in between.
func TestFaultsFindBug(t *testing.T) {
	report, err := sweep(func(c client.Client) reconcile.Reconciler { return &hastyReconciler{c} }).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range report.Findings {
		if finding.Family == controllerruntime.Intermediate && finding.Call == "update snowfalls/status default/first" {
			t.Log(finding)
			return
		}
	}
	t.Errorf("the bug is not found where it is:\n%s", report)
}

// hastyReconciler is SnowfallReconciler with a bug: its status is ahead of its work.
type hastyReconciler struct{ client.Client }

// Reconcile makes one flake at a time.
func (r *hastyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	snowfall := &snowv1.Snowfall{}
	if err := r.Get(ctx, req.NamespacedName, snowfall); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if snowfall.Status.Fallen == snowfall.Spec.Flakes {
		return ctrl.Result{}, nil
	}
	snowfall.Status.Fallen++
	if err := r.Status().Update(ctx, snowfall); err != nil {
		return ctrl.Result{}, err
	}
	flake := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: snowfall.Namespace, Name: fmt.Sprintf("%s-%d", snowfall.Name, snowfall.Status.Fallen-1),
	}}
	return ctrl.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, flake))
}
