package authentication

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var publishedCases = suite.Launching([]suite.Case{
	{ID: "S7/issuer-of-accounts-is-published", Failure: true, Test: issuerOfAccountsIsPublished,
		Source: "KEP-1393; k8s.io/kubernetes/pkg/serviceaccount/openidmetadata.go; " +
			"k8s.io/kubernetes/pkg/routes/openidmetadata.go",
		Promise: "A server publishes the issuer of its accounts' tokens and the key that each token names, as OpenID " +
			"Connect wants it, where --service-account-jwks-uri says; accounts may read them, strangers not, and " +
			"tokens of each accepted issuer are good."},
})

func issuerOfAccountsIsPublished(ctx context.Context, beside *suite.T) {
	const first, second, keys = "https://first.example.com", "https://second.example.com",
		"https://keys.example.com/keys"
	_, t := beside.Launch(ctx, envtest.WithFlags("--service-account-issuer="+first, "--service-account-issuer="+second,
		"--service-account-jwks-uri="+keys))
	got := t.Answered(ctx, "/.well-known/openid-configuration", http.StatusOK)
	t.Expect(got.Header.Get("Content-Type")).To(gomega.Equal("application/json"))
	t.Expect(got.Header.Get("Cache-Control")).To(gomega.Equal("public, max-age=3600"))
	metadata := suite.JSON[map[string]any](t, got)
	read := func(as *suite.T, path string) suite.Answer {
		return as.Ask(ctx, suite.Request{Path: path, Accept: "*/*"})
	}
	got = read(t, "/openid/v1/jwks")
	t.Expect(got.Header.Get("Content-Type")).To(gomega.Equal("application/jwk-set+json"))
	t.Expect(got.Header.Get("Cache-Control")).To(gomega.Equal("public, max-age=3600"))
	set := suite.JSON[struct{ Keys []map[string]string }](t, got)
	t.Expect(set.Keys).To(gomega.HaveLen(1))
	key := set.Keys[0]
	t.Expect(metadata).To(gomega.Equal(map[string]any{"issuer": first, "jwks_uri": keys,
		"response_types_supported": []any{"id_token"},
		"subject_types_supported":  []any{"public"}, "id_token_signing_alg_values_supported": []any{key["alg"]}}))
	t.Expect(key).To(gomega.HaveKeyWithValue("use", "sig"))
	t.Expect(key).NotTo(gomega.HaveKey("d"), "the private key")

	t.Account(ctx, "robot")
	token := t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{})
	t.Expect(claimsOf(t, token).Issuer).To(gomega.Equal(first))
	t.Expect(claimsOf(t, token).Audience).To(gomega.Equal([]string{first, second}),
		"each accepted issuer is an audience")
	content, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	t.Must(err, "decode the header of a token")
	var header map[string]string
	t.Must(json.Unmarshal(content, &header), "read the header of a token")
	t.Expect(header).To(gomega.And(gomega.HaveKeyWithValue("kid", key["kid"]),
		gomega.HaveKeyWithValue("alg", key["alg"])))
	for _, path := range []string{"/.well-known/openid-configuration", "/openid/v1/jwks"} {
		t.Expect(read(t.WithToken(token), path).Code).To(gomega.Equal(http.StatusOK), path)
		t.ExpectStatus(read(t.WithToken(""), path), suite.Forbidden)
		t.Expect(t.Ask(ctx, suite.Request{Path: path, Method: http.MethodPost}).Code).
			To(gomega.Equal(http.StatusMethodNotAllowed), path)
	}

	_, plain := beside.Launch(ctx, envtest.WithFlags("--service-account-issuer=plain"))
	for _, path := range []string{"/.well-known/openid-configuration", "/openid/v1/jwks"} {
		t.Expect(read(plain, path).Code).To(gomega.Equal(http.StatusNotFound), path)
	}
}
