package webhook_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	tokenwebhook "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	accesswebhook "k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
	"snowglobe.test/internal/pki"
)

var once = wait.Backoff{Steps: 1}

func serveTokenReview(t *testing.T, p place) *webhook.TokenReview {
	t.Helper()
	fake, err := webhook.ServeTokenReview(p)
	require.NoError(t, err)
	stopAtEnd(t, fake)
	return fake
}

func newAuthenticator(t *testing.T, p place, fake *webhook.TokenReview, retry wait.Backoff) *tokenwebhook.WebhookTokenAuthenticator {
	t.Helper()
	config := restConfig(t, fake.Kubeconfig(), p.dial)
	config.Timeout = 30 * time.Second // as for a kubeconfig from a flag
	client, err := tokenwebhook.New(config, "v1", authenticator.Audiences{"api"}, retry)
	require.NoError(t, err)
	return client
}

func TestTokenReview(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		fake := serveTokenReview(t, p)
		fake.SetToken("jane", authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"dev"},
			Extra: map[string]authenticationv1.ExtraValue{"scope": {"a", "b"}}})
		fake.SetToken("vault", authenticationv1.UserInfo{Username: "vault"}, "vault", "other")
		client := newAuthenticator(t, p, fake, once)
		forAPI := authenticator.WithAudiences(t.Context(), authenticator.Audiences{"api", "other"})
		review := func(ctx context.Context, token string) (*authenticator.Response, error) {
			response, _, err := client.AuthenticateToken(ctx, token)
			return response, err
		}

		response, err := review(t.Context(), "jane")
		require.NoError(t, err)
		assert.Equal(t, &user.DefaultInfo{Name: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"scope": {"a", "b"}}}, response.User)
		response, err = review(forAPI, "jane")
		require.NoError(t, err)
		assert.Equal(t, authenticator.Audiences{"api", "other"}, response.Audiences)
		response, err = review(forAPI, "vault")
		require.NoError(t, err)
		assert.Equal(t, authenticator.Audiences{"other"}, response.Audiences)
		_, err = review(authenticator.WithAudiences(t.Context(), authenticator.Audiences{"api"}), "vault")
		assert.EqualError(t, err, "the token is for other audiences")

		fake.RemoveToken("jane")
		response, err = review(t.Context(), "jane")
		require.NoError(t, err)
		assert.Nil(t, response, "not authenticated")
		fake.Requests.Reply(authenticationv1.TokenReviewStatus{Error: "the database is down"}, nil)
		_, err = review(t.Context(), "jane")
		assert.EqualError(t, err, "the database is down")
		fake.Requests.Reply(authenticationv1.TokenReviewStatus{}, stub.Status{Code: 200, Body: []byte("garbage")})
		_, err = review(t.Context(), "jane")
		assert.Error(t, err)
		assert.Equal(t, []string{"api", "other"}, fake.Requests.Calls()[1].Request.Audiences)
	})
}

// TestClientIsRecorded is about an API server that shows who it is.
func TestClientIsRecorded(t *testing.T) {
	authority, err := pki.NewAuthority("cluster")
	require.NoError(t, err)
	pair, err := authority.Client("kube-apiserver")
	require.NoError(t, err)
	everywhere(t, func(t *testing.T, p place) {
		fake := serveTokenReview(t, p)
		config := restConfig(t, fake.Kubeconfig(), p.dial)
		config.CertData, config.KeyData = pair.Cert, pair.Key
		client, err := tokenwebhook.New(config, "v1", nil, once)
		require.NoError(t, err)
		_, _, err = client.AuthenticateToken(t.Context(), "jane")
		require.NoError(t, err)
		assert.Equal(t, "kube-apiserver", fake.Requests.Calls()[0].Request.HTTP.Client)
	})
}

// TestTokenReviewRetries has the client try again after some failures and not others.
func TestTokenReviewRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := memory()
		fake := serveTokenReview(t, p)
		fake.SetToken("jane", authenticationv1.UserInfo{Username: "jane"})
		client := newAuthenticator(t, p, fake, wait.Backoff{Duration: time.Second, Steps: 3})
		fail := func(err error) func(context.Context, webhook.TokenRequest) (authenticationv1.TokenReviewStatus, error) {
			return func(context.Context, webhook.TokenRequest) (authenticationv1.TokenReviewStatus, error) {
				return authenticationv1.TokenReviewStatus{}, err
			}
		}
		fake.Requests.Use(webhook.TokenRule{Times: 2, Answer: fail(errors.New("disk full"))})
		_, ok, err := client.AuthenticateToken(t.Context(), "jane")
		require.NoError(t, err)
		assert.True(t, ok, "the third time")
		assert.Len(t, fake.Requests.Calls(), 3)

		gate := fake.Requests.Hold(nil)
		began := time.Now()
		_, _, err = client.AuthenticateToken(t.Context(), "jane")
		assert.ErrorContains(t, err, "exceeded")
		assert.Equal(t, 30*time.Second, time.Since(began))
		gate.Open()
	})
}

func TestTokenReviewRefuses(t *testing.T) {
	requests := append(badEnvelopes("authentication.k8s.io/v1", "TokenReview", "--authentication-token-webhook-version=v1"),
		badRequest{name: "no token", body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{}}`, want: "the review has no token"})
	everywhere(t, func(t *testing.T, p place) {
		fake := serveTokenReview(t, p)
		refuses(t, fake.URL(), rawClient(t, fake.CA(), p), requests, func() (int, error) {
			calls := fake.Requests.Calls()
			return len(calls), calls[len(calls)-1].Err
		})
	})
}

func serveAccess(t *testing.T, p place) *webhook.SubjectAccessReview {
	t.Helper()
	fake, err := webhook.ServeSubjectAccessReview(p)
	require.NoError(t, err)
	stopAtEnd(t, fake)
	return fake
}

// newAuthorizer returns upstream's, which fails closed.
func newAuthorizer(t *testing.T, p place, fake *webhook.SubjectAccessReview) *accesswebhook.WebhookAuthorizer {
	t.Helper()
	client, err := accesswebhook.New(restConfig(t, fake.Kubeconfig(), p.dial), "v1", 0, 0, once,
		authorizer.DecisionDeny, nil, "test", metrics.NoopAuthorizerMetrics{}, authorizationcel.NewDefaultCompiler())
	require.NoError(t, err)
	return client
}

func TestSubjectAccessReview(t *testing.T) {
	jane := &user.DefaultInfo{Name: "jane", Groups: []string{"dev", "system:authenticated"}}
	bob := &user.DefaultInfo{Name: "bob"}
	for _, c := range []struct {
		name   string
		decide func(*webhook.SubjectAccessReview)
		want   string // of each of the requests: y, n or -
	}{
		{"nothing", func(*webhook.SubjectAccessReview) {}, "------"},
		{"all", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{}, "") }, "yyyyyy"},
		{"user", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{User: "bob"}, "") }, "----yy"},
		{"group", func(f *webhook.SubjectAccessReview) { f.Deny(webhook.Access{Group: "dev"}, "") }, "nnnn--"},
		{"verb", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{Verb: "get"}, "") }, "y--yyy"},
		{"api group", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{APIGroup: "apps"}, "") }, "--y---"},
		{"resource", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{Resource: "pods"}, "") }, "y---y-"},
		{"subresource", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{Resource: "pods/log"}, "") }, "-y----"},
		{"namespace", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{Namespace: "prod"}, "") }, "--y---"},
		{"name", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{Name: "a"}, "") }, "yy--y-"},
		{"path", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{Path: "/healthz"}, "") }, "-----y"},
		{"paths", func(f *webhook.SubjectAccessReview) { f.Allow(webhook.Access{Path: "/healthz/*"}, "") }, "---y--"},
		{"the last word", func(f *webhook.SubjectAccessReview) {
			f.Deny(webhook.Access{}, "")
			f.Allow(webhook.Access{User: "jane"}, "")
			f.NoOpinion(webhook.Access{User: "jane", Verb: "scale"}, "")
		}, "yy-ynn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := memory()
				fake := serveAccess(t, p)
				c.decide(fake)
				client := newAuthorizer(t, p, fake)
				got := ""
				for _, attributes := range []authorizer.AttributesRecord{
					{User: jane, Verb: "get", APIVersion: "v1", Resource: "pods", Namespace: "default", Name: "a", ResourceRequest: true},
					{User: jane, Verb: "watch", APIVersion: "v1", Resource: "pods", Subresource: "log", Namespace: "default", Name: "a", ResourceRequest: true},
					{User: jane, Verb: "scale", APIGroup: "apps", Resource: "deployments", Namespace: "prod", Name: "b", ResourceRequest: true},
					{User: jane, Verb: "get", Path: "/healthz/etcd"},
					{User: bob, Verb: "get", APIVersion: "v1", Resource: "pods", Namespace: "default", Name: "a", ResourceRequest: true},
					{User: bob, Verb: "get", Path: "/healthz"},
				} {
					decision, _, err := client.Authorize(t.Context(), attributes)
					require.NoError(t, err)
					got += map[authorizer.Decision]string{authorizer.DecisionAllow: "y", authorizer.DecisionDeny: "n", authorizer.DecisionNoOpinion: "-"}[decision]
				}
				assert.Equal(t, c.want, got)
			})
		})
	}
}

func TestSubjectAccessReviewFails(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		fake := serveAccess(t, p)
		fake.Allow(webhook.Access{User: "jane"}, "she may")
		client := newAuthorizer(t, p, fake)
		// Each request has a path of its own: where time stands still, upstream's cache
		// holds a decision for ever, even if it is to hold it for no time.
		request := func(path string) authorizer.AttributesRecord {
			return authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: "get", Path: path}
		}
		decision, reason, err := client.Authorize(t.Context(), request("/"))
		require.NoError(t, err)
		assert.Equal(t, authorizer.DecisionAllow, decision)
		assert.Equal(t, "she may", reason)
		for name, failure := range map[string]error{
			"error": errors.New("disk full"), "break": stub.ErrBreak, "garbage": stub.Status{Code: 200, Body: []byte("{")},
		} {
			undo := fake.Requests.Reply(authorizationv1.SubjectAccessReviewStatus{Allowed: true}, failure)
			decision, _, err := client.Authorize(t.Context(), request("/"+name))
			assert.Error(t, err, name)
			assert.Equal(t, authorizer.DecisionDeny, decision, "%s: failing closed", name)
			undo()
		}
		fake.Requests.Reply(authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil)
		_, _, err = client.Authorize(t.Context(), request("/both"))
		assert.ErrorContains(t, err, "both")
	})
}

func TestSubjectAccessReviewRefuses(t *testing.T) {
	review := func(spec string) string {
		return `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":` + spec + `}`
	}
	requests := append(badEnvelopes("authorization.k8s.io/v1", "SubjectAccessReview", "--authorization-webhook-version=v1"),
		badRequest{name: "nothing asked", body: review(`{"user":"a"}`), want: "either resourceAttributes or nonResourceAttributes"},
		badRequest{name: "both asked", body: review(`{"user":"a","resourceAttributes":{},"nonResourceAttributes":{}}`), want: "either resourceAttributes or nonResourceAttributes"},
		badRequest{name: "no user", body: review(`{"nonResourceAttributes":{}}`), want: "neither a user nor groups"})
	everywhere(t, func(t *testing.T, p place) {
		fake := serveAccess(t, p)
		refuses(t, fake.URL(), rawClient(t, fake.CA(), p), requests, func() (int, error) {
			calls := fake.Requests.Calls()
			return len(calls), calls[len(calls)-1].Err
		})
	})
}
