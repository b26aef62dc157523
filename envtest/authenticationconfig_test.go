package envtest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/fakes/oidc"
)

// TestAuthenticationConfig has a server read the file of --authentication-config, at the
// start and when it has changed, in virtual time.
func TestAuthenticationConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	require.NoError(t, virtualtime.Bubble(func() error {
		listener := memnet.Listen()
		issuer, err := oidc.Serve(listener, "issuer.example.com")
		if err != nil {
			return err
		}
		// Anonymous requests may come in at one path.
		config := strings.Replace(string(issuer.AuthenticationConfiguration("controlplane", "one")), "{",
			`{"anonymous":{"enabled":true,"conditions":[{"path":"/healthz"}]},`, 1)
		write := func(audience string) {
			assert.NoError(t, os.WriteFile(file, []byte(strings.Replace(config, `"one"`, `"`+audience+`"`, 1)), 0o600))
		}
		write("one")
		cp, err := envtest.Launch(context.Background(), envtest.WithFlags("--authentication-config="+file),
			envtest.WithDialer(func(ctx context.Context, _, address string) (net.Conn, error) {
				if address != "issuer.example.com:443" {
					return nil, fmt.Errorf("no server is at %s", address)
				}
				return listener.DialContext(ctx)
			}))
		if err != nil {
			return err
		}
		time.Sleep(time.Second) // the issuer's documents are fetched in the background

		whoami := func(audience string) string {
			token, err := issuer.Issue(oidc.Token{Subject: "jane", Audience: []string{audience}})
			assert.NoError(t, err)
			return nameOf(cp, token)
		}
		assert.Equal(t, "jane", whoami("one"))
		assert.Equal(t, "Unauthorized", whoami("two"))
		assert.Equal(t, "snowglobe-admin", nameOf(cp, cp.Config().BearerToken))
		for path, want := range map[string]string{"/healthz": "<nil>", "/version": "Unauthorized"} {
			assert.Equal(t, want, fmt.Sprint(clientOf(cp, "").RESTClient().Get().AbsPath(path).Do(context.Background()).Error()))
		}

		write("two")
		time.Sleep(time.Minute + 15*time.Second) // upstream asks the new ones every ten seconds whether they are ready
		assert.Equal(t, "Unauthorized", whoami("one"))
		assert.Equal(t, "jane", whoami("two"))

		assert.NoError(t, os.WriteFile(file, []byte("nonsense"), 0o600))
		time.Sleep(time.Minute)
		assert.Equal(t, "jane", whoami("two"), "what was good stays")
		assert.NoError(t, cp.Stop(context.Background()))
		return issuer.Stop(context.Background())
	}))
}

// clientOf is one with a bearer token alone, "" meaning none.
func clientOf(cp *envtest.ControlPlane, token string) *kubernetes.Clientset {
	config := rest.CopyConfig(cp.Config())
	config.BearerToken = token
	return kubernetes.NewForConfigOrDie(config)
}

// nameOf is the user of a token, or why there is none.
func nameOf(cp *envtest.ControlPlane, token string) string {
	review, err := clientOf(cp, token).AuthenticationV1().SelfSubjectReviews().
		Create(context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	return review.Status.UserInfo.Username
}
