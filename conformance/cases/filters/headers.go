package filters

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
)

var headerCases = []suite.Case{
	{ID: "S4/large-answers-are-compressed", Test: largeAnswersAreCompressed,
		Source: "k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go, defaultGzipThresholdBytes",
		Promise: "An answer of more than 128 KiB is compressed for who accepts gzip, and only for him; a smaller " +
			"one, a list of few objects or an error is not."},
	{ID: "S4/origins-are-allowed-by-pattern", Failure: true, Needs: suite.Launch, Test: originsAreAllowedByPattern,
		Source: "k8s.io/apiserver/pkg/server/filters/cors.go, WithCORS",
		Promise: "Only an origin that --cors-allowed-origins matches is allowed to read answers, and its OPTIONS " +
			"request is answered 204 before anybody is asked who he is."},
	{ID: "S4/strict-transport-security-is-said", Needs: suite.Launch, Test: strictTransportSecurityIsSaid,
		Source:  "k8s.io/apiserver/pkg/server/filters/hsts.go, WithHSTS",
		Promise: "Every answer has the directives of --strict-transport-security-directives, and none by default."},
	{ID: "S4/answers-are-not-to-be-cached", Test: answersAreNotToBeCached,
		Source:  "k8s.io/apiserver/pkg/endpoints/filters/cachecontrol.go, WithCacheControl",
		Promise: "Answers and refusals say that they are private and not to be cached."},
	{ID: "S4/deprecated-resource-warns", Test: deprecatedResourceWarns,
		Source: "KEP-1693; k8s.io/apiserver/pkg/endpoints/installer.go and " +
			"k8s.io/apiserver/pkg/endpoints/deprecation/deprecation.go",
		Promise: "Whoever uses a deprecated resource is warned of it by a header that names what to use instead."},
}

func largeAnswersAreCompressed(ctx context.Context, t *suite.T) {
	maps := t.ConfigMaps(ctx)
	maps.MustCreate(ctx, maps.Object("large", large(140)))
	maps.MustCreate(ctx, maps.Object("medium", large(100)))
	ask := func(path, encoding string) suite.Answer {
		return t.Ask(ctx, suite.Request{Path: path, Header: map[string]string{"Accept-Encoding": encoding}})
	}
	got := ask(maps.Path()+"/large", "gzip")
	t.Expect(got.Header.Get("Content-Encoding")).To(gomega.Equal("gzip"))
	t.Expect(got.Header.Values("Vary")).To(gomega.ContainElement("Accept-Encoding"))
	t.Expect(len(got.Body)).To(gomega.BeNumerically("<", 100*1024), "the size of the answer")
	reader, err := gzip.NewReader(bytes.NewReader(got.Body))
	t.Must(err, "read gzip")
	plain, err := io.ReadAll(reader)
	t.Must(err, "read gzip")
	t.Expect(strings.Contains(string(plain), large(140))).To(gomega.BeTrue(), "the object is in the answer")

	for path, encoding := range map[string]string{"/large": "identity", "/medium": "gzip", "/missing": "gzip"} {
		got := ask(maps.Path()+path, encoding)
		t.Expect(got.Header.Values("Content-Encoding")).To(gomega.BeEmpty(), "%s with Accept-Encoding %s", path,
			encoding)
	}
	t.Expect(ask(maps.Path()+"?limit=500", "gzip").Header.Get("Content-Encoding")).
		To(gomega.Equal("gzip"), "the list is large too")
}

func originsAreAllowedByPattern(ctx context.Context, t *suite.T) {
	_, beside := t.Shared(ctx, "filters", flags())
	ask := func(t *suite.T, method, origin string) suite.Answer {
		return t.Ask(ctx, suite.Request{Method: method, Path: "/api/v1/namespaces",
			Header: map[string]string{"Origin": origin}})
	}
	for _, origin := range []string{"https://example.com", "http://example.com:8080"} {
		got := t.ExpectCode(ask(beside, http.MethodGet, origin), http.StatusOK)
		t.Expect(got.Header.Get("Access-Control-Allow-Origin")).To(gomega.Equal(origin))
		t.Expect(got.Header.Get("Access-Control-Allow-Credentials")).To(gomega.Equal("true"))
		t.Expect(got.Header.Get("Access-Control-Expose-Headers")).To(gomega.Equal("Date"))
	}
	got := ask(beside.WithToken("no-such-token"), http.MethodOptions, "https://example.com")
	t.ExpectCode(got, http.StatusNoContent)
	t.Expect(got.Header.Get("Access-Control-Allow-Methods")).To(gomega.Equal("POST, GET, OPTIONS, PUT, DELETE, PATCH"))
	t.Expect(got.Header.Get("Access-Control-Allow-Headers")).To(gomega.ContainSubstring("Authorization"))
	for _, other := range []suite.Answer{
		ask(beside, http.MethodGet, "https://example.com.evil.org"), ask(beside, http.MethodGet, ""),
		ask(t, http.MethodGet, "https://example.com"),
	} {
		t.ExpectCode(other, http.StatusOK)
		t.Expect(other.Header.Values("Access-Control-Allow-Origin")).To(gomega.BeEmpty())
	}
}

func strictTransportSecurityIsSaid(ctx context.Context, t *suite.T) {
	_, beside := t.Shared(ctx, "filters", flags())
	const name = "Strict-Transport-Security"
	for _, path := range []string{"/api/v1/namespaces", "/no/such/path", "/readyz"} {
		t.Expect(beside.Get(ctx, path).Header.Get(name)).To(gomega.Equal("max-age=31536000; includeSubDomains"), path)
		t.Expect(t.Get(ctx, path).Header.Values(name)).To(gomega.BeEmpty(), "%s without the flag", path)
	}
}

func answersAreNotToBeCached(ctx context.Context, t *suite.T) {
	for path, code := range map[string]int{"/api/v1/namespaces": 200, "/version": 200, "/no/such/path": 404,
		"/api/v1/namespaces/" + t.Name: 404} {
		t.Expect(t.Answered(ctx, path, code).Header.Get("Cache-Control")).To(gomega.Equal("no-cache, private"), path)
	}
	refused := t.As("nobody").Answered(ctx, "/api/v1/namespaces", http.StatusForbidden)
	t.Expect(refused.Header.Get("Cache-Control")).To(gomega.Equal("no-cache, private"), "a refusal")
	t.Expect(refused.Header.Get("X-Content-Type-Options")).To(gomega.Equal("nosniff"), "a refusal")
}

func deprecatedResourceWarns(ctx context.Context, t *suite.T) {
	want := []string{`299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"`}
	const endpoints = "/api/v1/namespaces/default/endpoints"
	for _, path := range []string{endpoints, endpoints + "/missing"} {
		got := t.Get(ctx, path)
		t.Expect(got.Header.Values("Warning")).To(gomega.Equal(want), "%s", got)
	}
	t.Expect(t.Get(ctx, "/api/v1/namespaces/default/configmaps").Header.Values("Warning")).To(gomega.BeEmpty())
}
