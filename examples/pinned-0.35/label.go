// Package label is a reconciler of a module that is pinned to Kubernetes 1.35, with
// controller-runtime. Its suite has moved from envtest to Snowglobe by one import.
package label

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Label is on each ConfigMap that a Reconciler has seen.
const Label = "example.com/seen"

// Reconciler labels ConfigMaps.
type Reconciler struct{ client.Client }

// Reconcile labels one.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var seen corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &seen); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if seen.Labels[Label] != "" {
		return ctrl.Result{}, nil
	}
	before := seen.DeepCopy()
	if seen.Labels == nil {
		seen.Labels = map[string]string{}
	}
	seen.Labels[Label] = "yes"
	return ctrl.Result{}, r.Patch(ctx, &seen, client.MergeFrom(before))
}

// SetupWithManager has a manager run it.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(r)
}
