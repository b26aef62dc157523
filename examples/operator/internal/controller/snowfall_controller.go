// Package controller reconciles Snowfalls.
package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	snowv1 "example.com/operator/api/v1"
)

// SnowfallReconciler makes the flakes of Snowfalls.
type SnowfallReconciler struct{ client.Client }

// SetupWithManager adds the controller to a manager.
func (r *SnowfallReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&snowv1.Snowfall{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile creates the flakes that are missing, and counts them.
func (r *SnowfallReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	snowfall := &snowv1.Snowfall{}
	if err := r.Get(ctx, req.NamespacedName, snowfall); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for i := range snowfall.Spec.Flakes {
		flake := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: snowfall.Namespace, Name: fmt.Sprintf("%s-%d", snowfall.Name, i),
		}}
		if err := controllerutil.SetControllerReference(snowfall, flake, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, flake); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, err
		}
	}
	if snowfall.Status.Fallen == snowfall.Spec.Flakes {
		return ctrl.Result{}, nil
	}
	snowfall.Status.Fallen = snowfall.Spec.Flakes
	return ctrl.Result{}, r.Status().Update(ctx, snowfall)
}
