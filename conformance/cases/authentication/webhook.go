package authentication

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
)

var webhookCases = suite.Launching([]suite.Case{
	{ID: "S7/token-webhook-vouches", Test: tokenWebhookVouches,
		Source: "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook/webhook.go, AuthenticateToken; " +
			"k8s.io/apiserver/pkg/authentication/token/cache/cached_token_authenticator.go",
		Promise: "A token webhook is asked for the server's audiences about a token that the server does not know, " +
			"its answer is the user with UID, groups and extra, and it is not asked again soon."},
	{ID: "S7/token-webhook-refuses", Failure: true, Test: tokenWebhookRefuses,
		Source: "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook/webhook.go, AuthenticateToken",
		Promise: "A token that the webhook does not know, or knows for other audiences, is answered 401, which is " +
			"remembered, too."},
	{ID: "S7/failing-token-webhook-is-401", Failure: true, Test: failingTokenWebhookIs401,
		Source: "k8s.io/apiserver/pkg/authentication/token/cache/cached_token_authenticator.go, " +
			"doAuthenticateToken: errors are not kept",
		Promise: "While the token webhook fails, those it has vouched for come in, other tokens of its are answered " +
			"401, those of accounts are not affected, and the failure is not remembered."},
})

// withTokenWebhook launches a control plane that asks a webhook about tokens.
func withTokenWebhook(ctx context.Context, t *suite.T) (*webhook.TokenReview, *suite.T) {
	hook := suite.Serve(t, "tokens", webhook.ServeTokenReview)
	_, other := t.Launch(ctx, envtest.WithFlags("--authentication-token-webhook-version=v1",
		"--api-audiences=snow",
		"--authentication-token-webhook-config-file="+t.File("tokens.kubeconfig", hook.Kubeconfig())))
	return hook, other
}

// asked is how often the webhook was asked about a token.
func asked(hook *webhook.TokenReview, token string) int {
	times := 0
	for _, call := range hook.Requests.Calls() {
		if call.Request.Token == token {
			times++
		}
	}
	return times
}

func tokenWebhookVouches(ctx context.Context, t *suite.T) {
	hook, other := withTokenWebhook(ctx, t)
	hook.SetToken("janes", authenticationv1.UserInfo{Username: "jane", UID: "u-1", Groups: []string{"devs"},
		Extra: map[string]authenticationv1.ExtraValue{"acme.com/project": {"snow", "ice"}}})
	for range 2 {
		t.Expect(other.WithToken("janes").WhoAmI(ctx)).
			To(gomega.Equal(authenticationv1.UserInfo{Username: "jane", UID: "u-1",
				Groups: []string{"devs",
					"system:authenticated"}, Extra: map[string]authenticationv1.ExtraValue{"acme.com/project": {"snow",
					"ice"}}}))
	}
	t.Expect(asked(hook, "janes")).To(gomega.Equal(1), "the answer is remembered")
	t.Expect(hook.Requests.Calls()[0].Request.Audiences).To(gomega.Equal([]string{"snow"}))
	hook.RemoveToken("janes")
	t.Expect(other.WithToken("janes").MustWhoAmI(ctx).Username).To(gomega.Equal("jane"))
	other.Account(ctx, "robot")
	own := other.Token(ctx, "robot", authenticationv1.TokenRequestSpec{})
	other.WithToken(own).MustWhoAmI(ctx)
	t.Expect(asked(hook, own)).To(gomega.BeZero(), "questions about the server's own tokens")
}

func tokenWebhookRefuses(ctx context.Context, t *suite.T) {
	hook, other := withTokenWebhook(ctx, t)
	hook.SetToken("elsewhere", authenticationv1.UserInfo{Username: "jane"}, "ice")
	hook.SetToken("here", authenticationv1.UserInfo{Username: "jane"}, "ice", "snow")
	for range 2 {
		refused(ctx, other.WithToken("strange"), "the webhook does not know it")
		refused(ctx, other.WithToken("elsewhere"), "it is for another audience")
	}
	t.Expect(other.WithToken("here").MustWhoAmI(ctx).Username).To(gomega.Equal("jane"))
	t.Expect(asked(hook, "strange")).To(gomega.Equal(1), "the refusal is remembered")
	hook.SetToken("strange", authenticationv1.UserInfo{Username: "joe"})
	refused(ctx, other.WithToken("strange"), "the refusal is remembered")
	other.WithToken("").Answered(ctx, "/version", http.StatusOK)
}

func failingTokenWebhookIs401(ctx context.Context, t *suite.T) {
	hook, other := withTokenWebhook(ctx, t)
	hook.SetToken("before", authenticationv1.UserInfo{Username: "jane"})
	hook.SetToken("during", authenticationv1.UserInfo{Username: "joe"})
	other.WithToken("before").MustWhoAmI(ctx)
	mend := hook.Requests.Use(webhook.TokenRule{Answer: func(context.Context,
		webhook.TokenRequest) (webhook.TokenAnswer, error) {
		return webhook.TokenAnswer{}, stub.Status{Code: http.StatusServiceUnavailable}
	}})
	refused(ctx, other.WithToken("during"), "the webhook fails")
	t.Expect(other.WithToken("before").MustWhoAmI(ctx).Username).To(gomega.Equal("jane"), "whom it has vouched for")
	other.Answered(ctx, "/api/v1/nodes", http.StatusOK)
	mend()
	t.Expect(other.WithToken("during").MustWhoAmI(ctx).Username).To(gomega.Equal("joe"), "the webhook is back")
}
