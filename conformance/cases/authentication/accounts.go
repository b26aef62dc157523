package authentication

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
)

var accountCases = []suite.Case{
	{ID: "S7/account-token-is-its-account", Test: accountTokenIsItsAccount,
		Source: "KEP-1205; KEP-4193; k8s.io/kubernetes/pkg/serviceaccount/claims.go, Claims; " +
			"k8s.io/apiserver/pkg/authentication/serviceaccount/util.go, MakeGroupNames",
		Promise: "A token of a service account authenticates as that account, with its UID, the groups of all " +
			"accounts and of those of its namespace, and the ID of the token; its claims say the same, and hold for " +
			"an hour by default."},
	{ID: "S7/token-holds-for-its-audiences", Level: suite.Core, Failure: true, Test: tokenHoldsForItsAudiences,
		Source: "KEP-1205; k8s.io/kubernetes/pkg/registry/authentication/tokenreview/storage.go; " +
			"k8s.io/kubernetes/pkg/serviceaccount/jwt.go",
		Promise: "A token for another audience is answered 401 by the server, and a TokenReview for that audience " +
			"says whose it is, naming the audiences that match."},
	{ID: "S7/token-review-tells-whose-a-token-is", Level: suite.Core, Failure: true,
		Test:   tokenReviewTellsWhoseATokenIs,
		Source: "k8s.io/kubernetes/pkg/registry/authentication/tokenreview/storage.go",
		Promise: "A TokenReview tells whose a token is, or that it is nobody's and why; without a token it is " +
			"refused with 400."},
	{ID: "S7/malformed-token-request-is-refused", Level: suite.Core, Failure: true,
		Test: malformedTokenRequestIsRefused,
		Source: "k8s.io/kubernetes/pkg/apis/authentication/validation/validation.go, ValidateTokenRequest; " +
			"k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage/token.go, Create",
		Promise: "A token for less than ten minutes or more than 2^32 seconds is refused with 422, of a missing " +
			"account or for a missing object with 404, for an object of another UID with 409, and for another kind " +
			"of object with 400."},
	{ID: "S7/changed-token-is-worthless", Level: suite.Core, Failure: true, Test: changedTokenIsWorthless,
		Source: "k8s.io/kubernetes/pkg/serviceaccount/jwt.go, AuthenticateToken",
		Promise: "A token of a service account whose claims or signature were changed, or that has no signature, is " +
			"answered 401."},
}

// claims are those of a token that a case looks at.
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  []string `json:"aud"`
	ID        string   `json:"jti"`
	IssuedAt  int64    `json:"iat"`
	NotBefore int64    `json:"nbf"`
	Expires   int64    `json:"exp"`
	About     struct {
		Namespace string            `json:"namespace"`
		Account   map[string]string `json:"serviceaccount"`
		Secret    map[string]string `json:"secret"`
		Pod       map[string]string `json:"pod"`
		Node      map[string]string `json:"node"`
	} `json:"kubernetes.io"`
}

func claimsOf(t *suite.T, token string) claims {
	parts := strings.Split(token, ".")
	t.Expect(parts).To(gomega.HaveLen(3), "a token has three parts")
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	t.Must(err, "decode the claims of a token")
	var c claims
	t.Must(json.Unmarshal(content, &c), "read the claims of a token")
	return c
}

func accountTokenIsItsAccount(ctx context.Context, t *suite.T) {
	ns, account := t.Namespace(ctx), t.Account(ctx, "robot")
	request, err := t.RequestToken(ctx, "robot", authenticationv1.TokenRequestSpec{})
	t.Must(err, "request a token")
	name := "system:serviceaccount:" + ns + ":robot"
	c := claimsOf(t, request.Status.Token)
	t.Expect(c.Subject).To(gomega.Equal(name))
	t.Expect(c.Audience).To(gomega.Equal(request.Spec.Audiences))
	t.Expect(c.Audience).To(gomega.ContainElement(c.Issuer), "the server is an audience by default")
	t.Expect(c.Expires-c.IssuedAt).To(gomega.BeEquivalentTo(3600), "seconds of validity")
	t.Expect(c.NotBefore).To(gomega.Equal(c.IssuedAt))
	t.Expect(c.About.Namespace).To(gomega.Equal(ns))
	t.Expect(c.About.Account).To(gomega.Equal(map[string]string{"name": "robot", "uid": string(account.UID)}))
	t.Expect(request.Spec.ExpirationSeconds).To(gomega.HaveValue(gomega.BeEquivalentTo(3600)))
	t.Expect(request.Status.ExpirationTimestamp.Time).To(gomega.BeTemporally("~", time.Unix(c.Expires, 0), time.Second))

	t.Expect(t.WithToken(request.Status.Token).WhoAmI(ctx)).To(gomega.Equal(authenticationv1.UserInfo{
		Username: name, UID: string(account.UID),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"},
		Extra:  map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=" + c.ID}},
	}))
	t.Expect(claimsOf(t, t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{})).ID).
		NotTo(gomega.Equal(c.ID), "each token has an ID of its own")
}

// tokenReview asks whose a token is.
func tokenReview(ctx context.Context, t *suite.T, token string,
	audiences ...string) authenticationv1.TokenReviewStatus {
	review := suite.Create(ctx, t, t.Kube.AuthenticationV1().TokenReviews().Create,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}})
	return review.Status
}

func tokenHoldsForItsAudiences(ctx context.Context, t *suite.T) {
	t.Account(ctx, "robot")
	name := "system:serviceaccount:" + t.Namespace(ctx) + ":robot"
	own := claimsOf(t, t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{})).Issuer
	vault := t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{Audiences: []string{"vault", "bank"}})
	both := t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{Audiences: []string{"vault", own}})
	refused(ctx, t.WithToken(vault), "a token for others")
	t.Expect(t.WithToken(both).MustWhoAmI(ctx).Username).To(gomega.Equal(name))

	t.Expect(tokenReview(ctx, t, vault, "vault", "shop")).To(gomega.And(gomega.HaveField("Authenticated", true),
		gomega.HaveField("User.Username", name), gomega.HaveField("Audiences",
			[]string{"vault"}), gomega.HaveField("Error", "")))
	for _, wrong := range []authenticationv1.TokenReviewStatus{tokenReview(ctx, t, vault),
		tokenReview(ctx, t, vault, "shop"), tokenReview(ctx, t, both, "bank")} {
		t.Expect(wrong).To(gomega.And(gomega.HaveField("Authenticated", false), gomega.HaveField("User.Username", ""),
			gomega.HaveField("Audiences", gomega.BeEmpty()), gomega.HaveField("Error",
				gomega.ContainSubstring("token audiences"))))
	}
}

func tokenReviewTellsWhoseATokenIs(ctx context.Context, t *suite.T) {
	account := t.Account(ctx, "robot")
	name := "system:serviceaccount:" + t.Namespace(ctx) + ":robot"
	good := tokenReview(ctx, t, t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{}))
	t.Expect(good).To(gomega.And(gomega.HaveField("Authenticated", true), gomega.HaveField("Error", ""),
		gomega.HaveField("User.Username", name), gomega.HaveField("User.UID", string(account.UID)),
		gomega.HaveField("User.Groups", gomega.ContainElement("system:serviceaccounts")), gomega.HaveField("Audiences",
			gomega.Not(gomega.BeEmpty()))))
	t.Expect(tokenReview(ctx, t, "s7-nobody-knows-this")).
		To(gomega.Equal(authenticationv1.TokenReviewStatus{Error: "invalid bearer token"}))
	_, err := t.Kube.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{},
		metav1.CreateOptions{})
	t.Expect(err).To(suite.BeStatus(suite.BadRequest), "no token")
}

func malformedTokenRequestIsRefused(ctx context.Context, t *suite.T) {
	t.Account(ctx, "robot")
	type spec = authenticationv1.TokenRequestSpec
	for _, seconds := range []int64{-1, 599, 1<<32 + 1} {
		_, err := t.RequestToken(ctx, "robot", spec{ExpirationSeconds: new(seconds)})
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec.expirationSeconds"}), "%d seconds", seconds)
	}
	_, err := t.RequestToken(ctx, "robot", spec{ExpirationSeconds: new(int64(600))})
	t.Must(err, "request a token for 600 seconds")
	_, err = t.RequestToken(ctx, "nobody", spec{})
	t.Expect(err).To(suite.BeStatus(suite.NotFound), "a missing account")
	bound := func(kind, name, uid string) error {
		_, err := t.RequestToken(ctx, "robot",
			spec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: name,
				UID: types.UID(uid)}})
		return err
	}
	secret := makeSecret(ctx, t, "bound")
	t.Expect(bound("Secret", "missing", "")).To(suite.BeStatus(suite.NotFound), "a missing Secret")
	t.Expect(bound("Secret", "bound", "another")).To(suite.BeStatus(suite.Conflict), "a Secret of another UID")
	t.Expect(bound("Secret", "bound", string(secret.UID))).To(gomega.Succeed())
	t.Expect(bound("ConfigMap", "any", "")).To(suite.BeStatus(suite.BadRequest), "a ConfigMap")
	t.Account(ctx, "other")
	makePod(ctx, t, "others", "other")
	t.Expect(bound("Pod", "others", "")).To(suite.BeStatus(suite.BadRequest), "a Pod of another account")
}

func changedTokenIsWorthless(ctx context.Context, t *suite.T) {
	t.Account(ctx, "robot")
	t.Account(ctx, "other")
	token := t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{})
	other := t.Token(ctx, "other", authenticationv1.TokenRequestSpec{})
	mine, theirs := strings.Split(token, "."), strings.Split(other, ".")
	t.WithToken(token).MustWhoAmI(ctx)
	for why, changed := range map[string][]string{
		"the claims of another":    {mine[0], theirs[1], mine[2]},
		"the signature of another": {mine[0], mine[1], theirs[2]},
		"no signature":             {mine[0], mine[1], ""},
		"the algorithm none":       {base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)), mine[1], ""},
	} {
		refused(ctx, t.WithToken(strings.Join(changed, ".")), why)
	}
}
