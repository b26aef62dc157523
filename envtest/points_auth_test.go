package envtest_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func init() {
	maps.Copy(pointTests, map[string]pointTest{
		"auth/token":       {show: showToken},
		"auth/certificate": {show: showCertificate, realTime: true, opts: []envtest.Option{envtest.WithListener("127.0.0.1:0")}},
	})
}

func showToken(t testing.TB, cp *envtest.ControlPlane) {
	accounts := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ServiceAccounts("default")
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := cp.Config()
	config.BearerToken = token.Status.Token
	bendLogin(t, cp, config, "auth/token caller=system:serviceaccount:default:robot")
}

func showCertificate(t testing.TB, cp *envtest.ControlPlane) {
	bendLogin(t, cp, cp.Config(envtest.User("jane"), envtest.Remote()), "auth/certificate caller=jane")
}

// bendLogin asks the server who one is, while something becomes of the login.
func bendLogin(t testing.TB, cp *envtest.ControlPlane, config *rest.Config, match string) {
	h := newHTTPTest(t, cp)
	client := kubernetes.NewForConfigOrDie(config)
	login := func() error {
		_, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	}
	require.NoError(t, login())
	assert.NoError(t, h.held(match, login, func(op fault.Operation) { assert.Equal(t, "apiserver-0", op.Server) }))
	for _, failure := range []string{"expired", "unauthorized"} {
		h.bent("fail "+match+" with="+failure, func() {
			err := login()
			assert.True(t, apierrors.IsUnauthorized(err), "%s: %v", failure, err)
			_, err = h.client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
			assert.NoError(t, err, "another user")
		})
	}
	h.bent("delay "+match+" by=1ms", func() { assert.NoError(t, login()) })
}
