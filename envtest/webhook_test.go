package envtest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
)

// reviewer serves one kind of review.
func reviewer[T any](answer func(*T)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var asked T
		if err := json.NewDecoder(req.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(&asked)
		_ = json.NewEncoder(w).Encode(asked)
	})
}

// admitAll admits objects unless their name is "no".
func admitAll(asked *admissionv1.AdmissionReview) {
	asked.Response = &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: asked.Request.Name != "no"}
	if !asked.Response.Allowed {
		asked.Response.Result = &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	}
}

// validates has a webhook asked about new config maps.
func validates(t *testing.T, cp *envtest.ControlPlane, to admissionregistrationv1.WebhookClientConfig) {
	t.Helper()
	none, seconds := admissionregistrationv1.SideEffectClassNone, int32(1)
	_, err := kubernetes.NewForConfigOrDie(cp.Config()).AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(context.Background(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "names"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "names.example.com", ClientConfig: to, AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, TimeoutSeconds: &seconds,
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = cp.Settle(context.Background())
	require.NoError(t, err)
}

func createConfigMap(cp *envtest.ControlPlane, name string) error {
	_, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default").Create(context.Background(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// TestWebhooks has a plain handler asked in virtual time and outside, by URL and as
// a service; no server is there before it opens and after it stops.
func TestWebhooks(t *testing.T) {
	test := func(t *testing.T, cp *envtest.ControlPlane) {
		hook, err := cp.Webhooks().New(reviewer(admitAll), "names.default.svc")
		require.NoError(t, err)
		path, port := "/", int32(443)
		_, err = kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Services("default").Create(context.Background(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "names"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		validates(t, cp, admissionregistrationv1.WebhookClientConfig{
			CABundle: hook.CA(),
			Service:  &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "names", Path: &path, Port: &port},
		})
		assert.ErrorContains(t, createConfigMap(cp, "early"), "connection refused")
		hook.Open()
		assert.NoError(t, createConfigMap(cp, "yes"))
		assert.True(t, apierrors.IsForbidden(createConfigMap(cp, "no")))

		// Another takes the place.
		require.NoError(t, hook.Stop(context.Background()))
		assert.ErrorContains(t, createConfigMap(cp, "late"), "connection refused")
		hook.Open()
		assert.ErrorContains(t, createConfigMap(cp, "late"), "connection refused")
		_, err = cp.Webhooks().Serve(reviewer(admitAll), "names.default.svc")
		require.NoError(t, err)
		assert.NoError(t, createConfigMap(cp, "late"))
	}
	t.Run("virtual", func(t *testing.T) { envtest.Simulate(t, test) })
	t.Run("real", func(t *testing.T) { test(t, envtest.Start(t)) })
}

// TestWebhookByURL has a webhook at a host of its own.
func TestWebhookByURL(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		hook, err := cp.Webhooks().Serve(reviewer(admitAll))
		require.NoError(t, err)
		validates(t, cp, hook.ClientConfig("/"))
		assert.NoError(t, createConfigMap(cp, "yes"))
		assert.True(t, apierrors.IsForbidden(createConfigMap(cp, "no")))
	})
}

// TestWithWebhookFlag asks webhooks who a token's user is and what they may do.
func TestWithWebhookFlag(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none")) // the flags name files all the same
	tokens := reviewer(func(asked *authenticationv1.TokenReview) {
		asked.Status.Authenticated = asked.Spec.Token == "sesame"
		asked.Status.User.Username = "ali"
	})
	access := reviewer(func(asked *authorizationv1.SubjectAccessReview) {
		about := asked.Spec.ResourceAttributes
		asked.Status.Allowed = asked.Spec.User == "ali" && about != nil && about.Resource == "secrets"
	})
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		config := rest.CopyConfig(cp.Config())
		config.BearerToken = "sesame"
		ali := kubernetes.NewForConfigOrDie(config).CoreV1()
		_, err := ali.Secrets("default").List(t.Context(), metav1.ListOptions{})
		assert.NoError(t, err)
		_, err = ali.ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		config.BearerToken = "please"
		_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsUnauthorized(err), "%v", err)
	},
		envtest.WithWebhookFlag("authentication-token-webhook-config-file", tokens),
		envtest.WithWebhookFlag("authorization-webhook-config-file", access),
		envtest.WithFlags("--authorization-mode=Webhook,RBAC"))
}

func TestWithWebhookFlagRefuses(t *testing.T) {
	_, err := envtest.Launch(t.Context(), envtest.WithWebhookFlag("--token-webhook", http.NotFoundHandler()))
	assert.ErrorContains(t, err, `kube-apiserver has no flag "--token-webhook"`)
}
