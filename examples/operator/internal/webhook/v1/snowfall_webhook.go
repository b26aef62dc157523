// Package v1 has the webhooks of snow.example.com/v1.
package v1

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	snowv1 "example.com/operator/api/v1"
)

// MaxFlakes is how many flakes a Snowfall may have.
const MaxFlakes = 100

// SnowfallWebhook gives Snowfalls their default, and refuses blizzards.
type SnowfallWebhook struct{}

// SetupWithManager adds the webhooks to a manager.
func (w *SnowfallWebhook) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &snowv1.Snowfall{}).WithDefaulter(w).WithValidator(w).Complete()
}

// Default implements admission.Defaulter.
func (*SnowfallWebhook) Default(_ context.Context, snowfall *snowv1.Snowfall) error {
	if snowfall.Spec.Flakes == 0 {
		snowfall.Spec.Flakes = 1
	}
	return nil
}

// ValidateCreate implements admission.Validator.
func (*SnowfallWebhook) ValidateCreate(_ context.Context, snowfall *snowv1.Snowfall) (admission.Warnings, error) {
	if snowfall.Spec.Flakes > MaxFlakes {
		return nil, fmt.Errorf("%d flakes are a blizzard; the most is %d", snowfall.Spec.Flakes, MaxFlakes)
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (w *SnowfallWebhook) ValidateUpdate(ctx context.Context, _, snowfall *snowv1.Snowfall) (admission.Warnings, error) {
	return w.ValidateCreate(ctx, snowfall)
}

// ValidateDelete implements admission.Validator.
func (*SnowfallWebhook) ValidateDelete(context.Context, *snowv1.Snowfall) (admission.Warnings, error) {
	return nil, nil
}
