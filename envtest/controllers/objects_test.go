package controllers_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllers"
)

// TestNamespace deletes a namespace with content.
func TestNamespace(t *testing.T) {
	simulate(t, func(c cluster) {
		ctx := context.Background()
		_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "full"}}, metav1.CreateOptions{})
		require.NoError(c, err)
		_, err = c.client.CoreV1().ConfigMaps("full").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		require.NoError(c, err)
		require.NoError(c, c.client.CoreV1().Namespaces().Delete(ctx, "full", metav1.DeleteOptions{}))
		c.eventually(time.Minute, func() (bool, error) {
			_, err := c.client.CoreV1().Namespaces().Get(ctx, "full", metav1.GetOptions{})
			return apierrors.IsNotFound(err), err
		})
		list, err := c.client.CoreV1().ConfigMaps("full").List(ctx, metav1.ListOptions{})
		require.NoError(c, err)
		assert.Empty(c, list.Items)
	})
}

// TestGarbageCollector deletes an owner in each of the three ways.
func TestGarbageCollector(t *testing.T) {
	simulate(t, func(c cluster) {
		ctx := context.Background()
		maps := c.client.CoreV1().ConfigMaps("default")
		for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
			owner, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
			require.NoError(c, err)
			blocks := true
			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &blocks},
			}}}, metav1.CreateOptions{})
			require.NoError(c, err)
			require.NoError(c, maps.Delete(ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &policy}))
			c.eventually(time.Minute, func() (bool, error) {
				_, ownerErr := maps.Get(ctx, "owner", metav1.GetOptions{})
				owned, err := maps.Get(ctx, "owned", metav1.GetOptions{})
				if policy != metav1.DeletePropagationOrphan {
					return apierrors.IsNotFound(ownerErr) && apierrors.IsNotFound(err), fmt.Errorf("%s: %w, %w", policy, ownerErr, err)
				}
				return apierrors.IsNotFound(ownerErr) && err == nil && len(owned.OwnerReferences) == 0, fmt.Errorf("%s: %w", policy, ownerErr)
			})
		}
	})
}

// TestQuota enforces a quota, and recomputes it when room has been made.
func TestQuota(t *testing.T) {
	simulate(t, func(c cluster) {
		ctx := context.Background()
		quota := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "two"}}
		quota.Spec.Hard = corev1.ResourceList{"count/configmaps": resource.MustParse("2")}
		_, err := c.client.CoreV1().ResourceQuotas("default").Create(ctx, &quota, metav1.CreateOptions{})
		require.NoError(c, err)
		used := func(want int64) {
			c.Helper()
			c.eventually(10*time.Minute, func() (bool, error) {
				now, err := c.client.CoreV1().ResourceQuotas("default").Get(ctx, "two", metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				count, ok := now.Status.Used["count/configmaps"]
				return ok && count.Value() == want, fmt.Errorf("used %s", count.String())
			})
		}
		used(1) // kube-root-ca.crt
		maps := c.client.CoreV1().ConfigMaps("default")
		create := func(name string) error {
			_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		}
		require.NoError(c, create("a"))
		require.True(c, apierrors.IsForbidden(create("b")))
		require.NoError(c, maps.Delete(ctx, "a", metav1.DeleteOptions{}))
		used(1)
		require.NoError(c, create("b"))
	})
}

// TestServiceAccounts finds what a new namespace gets, and a token in the Secret that asks
// for one; with the admission plugin on, a Pod gets its volume.
func TestServiceAccounts(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		controllers.Start(t, cp, "serviceaccount", "serviceaccount-token", "root-ca-certificate-publisher-controller")
		c := newCluster(t, cp)
		ctx := context.Background()
		core := c.client.CoreV1()
		c.eventually(time.Minute, func() (bool, error) {
			_, err := core.ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
			return err == nil, err
		})
		webhook, err := cp.Webhooks().New(http.NotFoundHandler())
		require.NoError(t, err)
		c.eventually(time.Minute, func() (bool, error) {
			published, err := core.ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
			return err == nil && published.Data["ca.crt"] == string(webhook.CA()), err
		})
		_, err = core.Secrets("default").Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
			Type:       corev1.SecretTypeServiceAccountToken,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.eventually(time.Minute, func() (bool, error) {
			secret, err := core.Secrets("default").Get(ctx, "token", metav1.GetOptions{})
			return err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err
		})
		template := podTemplate("i", nil)
		pod, err := core.Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: template.Spec}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Len(t, pod.Spec.Volumes, 1)
	}, envtest.WithFlags("--enable-admission-plugins=ServiceAccount"))
}
