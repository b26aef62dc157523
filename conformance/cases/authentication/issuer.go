package authentication

import (
	"context"
	"time"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/fakes/oidc"
)

var issuerCases = suite.Launching([]suite.Case{
	{ID: "S7/ID-token-of-an-issuer-is-its-user", Test: idTokenOfAnIssuerIsItsUser,
		Source: "KEP-3331; k8s.io/apiserver/plugin/pkg/authenticator/token/oidc/oidc.go, AuthenticateToken",
		Promise: "An ID token of a configured issuer authenticates as the user and the groups that its claims name, " +
			"also when it is signed by a key that the issuer has made meanwhile."},
	{ID: "S7/bad-ID-token-is-401", Failure: true, Test: badIDTokenIs401,
		Source: "KEP-3331; k8s.io/apiserver/plugin/pkg/authenticator/token/oidc/oidc.go, AuthenticateToken",
		Promise: "An ID token that has expired, is for another audience, of another issuer or of nobody, or bears a " +
			"forged, an unknown or no signature, is answered 401."},
})

// withIssuer launches a control plane that accepts an issuer's tokens for one audience.
func withIssuer(ctx context.Context, t *suite.T) (*oidc.Issuer, *suite.T) {
	issuer := suite.Serve(t, "issuer", oidc.Serve)
	file := t.File("authentication.yaml", issuer.AuthenticationConfiguration("controlplane", "snow"))
	_, other := t.Launch(ctx, envtest.WithFlags("--authentication-config="+file))
	return issuer, other
}

func issue(t *suite.T, issuer *oidc.Issuer, change func(*oidc.Token)) string {
	token := oidc.Token{Subject: "jane", Audience: []string{"ice", "snow"},
		Claims: map[string]any{"groups": []string{"devs", "ops"}}}
	if change != nil {
		change(&token)
	}
	text, err := issuer.Issue(token)
	t.Must(err, "issue a token")
	return text
}

func idTokenOfAnIssuerIsItsUser(ctx context.Context, t *suite.T) {
	issuer, other := withIssuer(ctx, t)
	jane := other.WithToken(issue(t, issuer, nil))
	untilKnown(ctx, jane, "jane") // the server fetches the keys in the background
	t.Expect(jane.WhoAmI(ctx)).To(gomega.Equal(authenticationv1.UserInfo{Username: "jane",
		Groups: []string{"devs", "ops", "system:authenticated"}}))
	t.Must(issuer.Rotate(), "rotate the issuer's key")
	joe := issue(t, issuer, func(token *oidc.Token) { token.Subject, token.Claims = "joe", nil })
	t.Expect(other.WithToken(joe).WhoAmI(ctx)).
		To(gomega.Equal(authenticationv1.UserInfo{Username: "joe", Groups: []string{"system:authenticated"}}))
	previous := issue(t, issuer, func(token *oidc.Token) { token.Key = oidc.PreviousKey })
	t.Expect(other.WithToken(previous).MustWhoAmI(ctx).Username).To(gomega.Equal("jane"),
		"the old key is still published")
}

func badIDTokenIs401(ctx context.Context, t *suite.T) {
	issuer, other := withIssuer(ctx, t)
	untilKnown(ctx, other.WithToken(issue(t, issuer, nil)), "jane")
	for why, change := range map[string]func(*oidc.Token){
		"it has expired":      func(token *oidc.Token) { token.Lifetime = -time.Hour },
		"another audience":    func(token *oidc.Token) { token.Audience = []string{"ice"} },
		"another issuer":      func(token *oidc.Token) { token.Claims["iss"] = "https://other.example.com" },
		"nobody":              func(token *oidc.Token) { token.Claims["sub"] = nil },
		"groups of no groups": func(token *oidc.Token) { token.Claims["groups"] = 7 },
		"a forged signature":  func(token *oidc.Token) { token.Key = oidc.ForgedKey },
		"an unknown key":      func(token *oidc.Token) { token.Key = oidc.UnknownKey },
		"no signature":        func(token *oidc.Token) { token.Key = oidc.NoKey },
	} {
		refused(ctx, other.WithToken(issue(t, issuer, change)), why)
	}
	other.WithToken(issue(t, issuer, nil)).MustWhoAmI(ctx)
}
