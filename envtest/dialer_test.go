package envtest_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/fakes/webhook"
)

// TestWithDialer calls a webhook that is in the memory of the process, in virtual time.
func TestWithDialer(t *testing.T) {
	const host = "labels.example.com"
	err := virtualtime.Bubble(func() error {
		listener := memnet.Listen()
		hook, err := webhook.ServeAdmission(listener, host)
		if err != nil {
			return err
		}
		hook.Requests.Use(webhook.AdmissionRule{Answer: webhook.Mutate(func(object *unstructured.Unstructured) error {
			object.SetLabels(map[string]string{"seen": "yes"})
			return nil
		})})
		cp, err := envtest.Launch(context.Background(), envtest.WithDialer(func(ctx context.Context, _, address string) (net.Conn, error) {
			if address != host+":443" {
				return nil, fmt.Errorf("no server is at %s", address)
			}
			return listener.DialContext(ctx)
		}))
		if err != nil {
			return err
		}
		mutated(t, cp, hook)
		assert.NoError(t, cp.Stop(context.Background()))
		return hook.Stop(context.Background())
	})
	require.NoError(t, err)
}

// mutated creates a config map through the webhook.
func mutated(t *testing.T, cp *envtest.ControlPlane, hook *webhook.Admission) {
	ctx := context.Background()
	client := kubernetes.NewForConfigOrDie(cp.Config())
	none := admissionregistrationv1.SideEffectClassNone
	_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "labels"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "labels.example.com", ClientConfig: hook.ClientConfig("/mutate"),
			AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if !assert.NoError(t, err) {
		return
	}
	_, err = cp.Settle(ctx)
	assert.NoError(t, err)
	created, err := client.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if assert.NoError(t, err) {
		assert.Equal(t, "yes", created.Labels["seen"])
	}
}
