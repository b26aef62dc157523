package controllerruntime_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"snowglobe.test/envtest/controllerruntime"
	"snowglobe.test/internal/sample"
)

// sibling gives each labelled ConfigMap a Secret, and writes its name down.
type sibling struct {
	client.Client
	planted bool // the Secret has a random name, which is lost with the manager
}

const nameOfSecret = "example.com/secret"

// Reconcile implements reconcile.Reconciler.
func (s *sibling) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	owner := &corev1.ConfigMap{}
	if err := s.Get(ctx, req.NamespacedName, owner); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if owner.Labels["secret"] != "wanted" || owner.Annotations[nameOfSecret] != "" {
		return reconcile.Result{}, nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if s.planted {
		secret.Name, secret.GenerateName = "", req.Name+"-"
	}
	if err := controllerutil.SetControllerReference(owner, secret, s.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	if err := s.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, err
	}
	before := client.MergeFrom(owner.DeepCopy())
	owner.Annotations = map[string]string{nameOfSecret: secret.Name}
	return reconcile.Result{}, s.Patch(ctx, owner, before)
}

// sweep is of the controller with or without its bug. Names are counted, as some are
// random.
func sweep(planted bool) controllerruntime.Sweep {
	return controllerruntime.Sweep{
		Setup: func(mgr manager.Manager) error {
			return builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&sibling{mgr.GetClient(), planted})
		},
		Steps: []func(context.Context, client.Client) error{
			func(ctx context.Context, c client.Client) error {
				return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"secret": "wanted"}}})
			},
			func(ctx context.Context, c client.Client) error {
				return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}})
			},
		},
		State: func(ctx context.Context, c client.Client) (string, error) {
			list := &corev1.SecretList{}
			if err := c.List(ctx, list, client.InNamespace("default")); err != nil {
				return "", err
			}
			return strings.Repeat("a secret of a\n", len(list.Items)), nil
		},
	}
}

// TestSweep finds the planted bug, at the call that it breaks at, and nothing in the
// controller without it, in which TestSweepLists looks at more.
func TestSweep(t *testing.T) {
	for again := range 2 {
		if again == 1 && !sample.All() {
			break
		}
		report, err := sweep(true).Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"create secrets default/a-*", "patch configmaps default/a"}, report.Calls)
		assert.Equal(t, 7, report.Runs)
		assert.Empty(t, report.Missed)
		var found []string
		for _, finding := range report.Findings {
			require.NoError(t, finding.Err)
			assert.Contains(t, finding.Difference, "+a secret of a")
			found = append(found, string(finding.Family)+" "+finding.Call)
		}
		assert.Equal(t, []string{
			"intermediate create secrets default/a-*", "lost create secrets default/a-*",
			"stale create secrets default/a-*", "stale patch configmaps default/a",
		}, found)
	}
	if sample.All() {
		sweep(false).Test(t)
	}
}

// TestSweepLists compares whole objects, as the sweep does not say what else.
func TestSweepLists(t *testing.T) {
	s := sweep(false)
	s.State, s.Lists = nil, []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}}
	s.Test(t)
}

// TestSweepRefuses names what is missing, and why the run without a fault failed.
func TestSweepRefuses(t *testing.T) {
	_, err := controllerruntime.Sweep{}.Run(t.Context())
	assert.ErrorContains(t, err, "a sweep needs Setup, Steps, and State or Lists")
	s := sweep(false)
	s.Setup = func(manager.Manager) error { return apierrors.NewBadRequest("no") }
	_, err = s.Run(t.Context())
	assert.ErrorContains(t, err, "the run without a fault: the manager has ended by itself: setup: no")
}
