package authentication

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var anybodyCases = []suite.Case{
	{ID: "S7/unknown-token-is-401", Level: suite.Core, Failure: true, Test: unknownTokenIs401,
		Source: "k8s.io/apiserver/pkg/endpoints/filters/authentication.go, Unauthorized; " +
			"k8s.io/apiserver/pkg/authentication/request/bearertoken/bearertoken.go",
		Promise: "A bearer token that nobody vouches for is answered 401 with a Status that gives nothing away, on " +
			"any path, and never taken for an anonymous request."},
	{ID: "S7/anonymous-is-a-user-of-few-rights", Test: anonymousIsAUserOfFewRights,
		Source: "k8s.io/apiserver/pkg/authentication/request/anonymous/anonymous.go; " +
			"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, system:public-info-viewer",
		Promise: "A request without credentials is from system:anonymous in system:unauthenticated: health and " +
			"version are for it, all else is 403."},
	{ID: "S7/anonymous-can-be-limited-to-paths", Failure: true, Needs: suite.Launch,
		Test:   anonymousCanBeLimitedToPaths,
		Source: "KEP-4633; k8s.io/apiserver/pkg/authentication/request/anonymous/anonymous.go",
		Promise: "With conditions on anonymous requests, those without credentials are answered 401 everywhere but " +
			"at the paths of the conditions."},
	{ID: "S7/anonymous-can-be-turned-off", Failure: true, Needs: suite.Launch, Test: anonymousCanBeTurnedOff,
		Source: "k8s.io/kubernetes/pkg/kubeapiserver/options/authentication.go, --anonymous-auth",
		Promise: "With --anonymous-auth=false all requests without credentials are answered 401, and others are not " +
			"affected."},
	{ID: "S7/self-review-tells-who-one-is", Level: suite.Core, Test: selfReviewTellsWhoOneIs,
		Source: "KEP-3325; k8s.io/kubernetes/pkg/registry/authentication/selfsubjectreview/rest.go",
		Promise: "A SelfSubjectReview tells name, UID, groups and extra of whoever asks, also of whom one " +
			"impersonates."},
}

func unknownTokenIs401(ctx context.Context, t *suite.T) {
	stranger := t.WithToken("s7-nobody-knows-this")
	for _, path := range []string{"/api/v1/namespaces", "/version", "/readyz", "/s7-no-such-path"} {
		status := t.ExpectStatus(stranger.Get(ctx, path), suite.Unauthorized)
		t.Expect(status.Message).To(gomega.Equal("Unauthorized"), path)
		t.Expect(status.Details).To(gomega.BeNil(), path)
	}
	anonymous := t.WithToken("")
	for _, header := range []string{"bearer s7-nobody-knows-this", "BEARER s7-nobody-knows-this"} {
		got := anonymous.Ask(ctx, suite.Request{Path: "/version", Header: map[string]string{"Authorization": header}})
		t.ExpectStatus(got, suite.Unauthorized)
	}
	// What is no bearer token is no credential at all.
	for _, header := range []string{"Basic amFuZTpzbm93", "Bearer", "Bearer "} {
		got := anonymous.Ask(ctx, suite.Request{Path: "/version", Header: map[string]string{"Authorization": header}})
		t.Expect(got.Code).To(gomega.Equal(http.StatusOK), "Authorization: %s: %s", header, got)
	}
}

func anonymousIsAUserOfFewRights(ctx context.Context, t *suite.T) {
	anonymous := t.WithToken("")
	for _, path := range []string{"/version", "/readyz", "/livez", "/healthz"} {
		anonymous.Answered(ctx, path, http.StatusOK)
	}
	for _, path := range []string{"/api/v1/namespaces", "/apis", "/metrics", "/s7-no-such-path"} {
		status := t.ExpectStatus(anonymous.Get(ctx, path), suite.Forbidden)
		t.Expect(status.Message).To(gomega.ContainSubstring(`User "system:anonymous" cannot`), path)
	}
	_, err := anonymous.WhoAmI(ctx)
	t.Expect(err).To(suite.BeStatus(suite.Forbidden), "not even that is for the anonymous")
}

func anonymousCanBeLimitedToPaths(ctx context.Context, t *suite.T) {
	file := t.File("authentication.yaml",
		[]byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration",
		"anonymous":{"enabled":true,"conditions":[{"path":"/healthz"},{"path":"/livez"}]}}`))
	_, other := t.Launch(ctx, envtest.WithFlags("--authentication-config="+file))
	anonymous := other.WithToken("")
	anonymous.Answered(ctx, "/healthz", http.StatusOK)
	anonymous.Answered(ctx, "/livez?verbose", http.StatusOK)
	for _, path := range []string{"/readyz", "/healthz/ping", "/version", "/api"} {
		t.ExpectStatus(anonymous.Get(ctx, path), suite.Unauthorized)
	}
	other.Answered(ctx, "/version", http.StatusOK)
}

func anonymousCanBeTurnedOff(ctx context.Context, t *suite.T) {
	_, other := t.Launch(ctx, envtest.WithFlags("--anonymous-auth=false"))
	for _, path := range []string{"/healthz", "/readyz", "/version", "/api/v1/namespaces"} {
		t.ExpectStatus(other.WithToken("").Get(ctx, path), suite.Unauthorized)
		other.Answered(ctx, path, http.StatusOK)
	}
}

func selfReviewTellsWhoOneIs(ctx context.Context, t *suite.T) {
	jane := t.As("jane", "devs", "ops")
	t.Expect(jane.WhoAmI(ctx)).To(gomega.Equal(authenticationv1.UserInfo{Username: "jane",
		Groups: []string{"devs", "ops", "system:authenticated"}}))
	t.Expect(t.MustWhoAmI(ctx).Groups).To(gomega.ContainElement("system:authenticated"))
	review := suite.Create(ctx, t, jane.Kube.AuthenticationV1().SelfSubjectReviews().Create,
		&authenticationv1.SelfSubjectReview{})
	t.Expect(review.CreationTimestamp.IsZero()).To(gomega.BeFalse(), "it has a time")
	t.Expect(review.Name).To(gomega.BeEmpty(), "it is no object")
}
