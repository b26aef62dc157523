package delegation

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/trace"
)

const filterChain = "k8s.io/apiserver/pkg/server/config.go, DefaultBuildHandlerChain"

var filterCases = []suite.Case{
	{ID: "S1/requests-go-down-the-chain", Needs: suite.Launch, Test: requestsGoDownTheChain,
		Source: "k8s.io/kubernetes/cmd/kube-apiserver/app/server.go, CreateServerChain; " +
			"k8s.io/apiserver/pkg/server/handler.go, director",
		Promise: "The aggregator answers for APIServices, kube-apiserver for built-in groups, apiextensions for " +
			"custom resources, and the not-found handler for all else."},
	{ID: "S1/failed-stage-is-the-error-of-the-start", Failure: true, Needs: suite.Launch, Test: failedStage,
		Source: "k8s.io/kubernetes/cmd/kube-apiserver/app/server.go, CreateServerChain",
		Promise: "The chain is built from its end to its head: not-found, apiextensions, kube-apiserver, aggregator; " +
			"a stage that fails is the error of the start, and no later one begins."},
	{ID: "S1/authentication-comes-first", Level: suite.Core, Failure: true, Test: authenticationComesFirst,
		Source: filterChain + ", WithAuthentication before WithAuthorization before the handlers",
		Promise: "A request with a bad token is 401 and one without permission is 403, even for a path that does not " +
			"exist, so that strangers can't tell what does."},
	{ID: "S1/deadline-is-checked-before-the-caller", Failure: true, Test: deadlineIsCheckedFirst,
		Source:  filterChain + "; k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go, parseTimeout",
		Promise: "A timeout parameter that is no duration is 400 before the caller is authenticated."},
	{ID: "S1/impersonation-replaces-the-caller", Level: suite.Core, Failure: true,
		Test:   impersonationReplacesTheCaller,
		Source: filterChain + ", WithImpersonation before WithAuthorization",
		Promise: "What an impersonated user may do is decided as if that user had asked, and who may not impersonate " +
			"is 403 whatever the request is."},
	{ID: "S1/answers-are-not-for-caches", Test: answersAreNotForCaches,
		Source:  "k8s.io/apiserver/pkg/endpoints/filters/cachecontrol.go, WithCacheControl",
		Promise: "Every answer, errors among them, says Cache-Control: no-cache, private."},
	{ID: "S1/answers-carry-an-audit-id", Test: answersCarryAnAuditID,
		Source: "k8s.io/apiserver/pkg/endpoints/filters/audit_init.go, WithAuditInit",
		Promise: "Every answer has an Audit-ID, a different one each time, unless the client sends one, which is " +
			"kept: also for 401 and 404."},
}

// answeredBy returns the code of a request and the server of the chain that answered it.
func answeredBy(ctx context.Context, t *suite.T, cp *envtest.ControlPlane, path string) string {
	uri := path + "?by=" + t.Name
	t.Get(ctx, uri)
	record, err := cp.Trace().Await(ctx, func(r trace.Record) bool {
		request, ok := r.Event.(trace.Request)
		return ok && request.URI == uri && request.Phase == trace.End
	})
	t.Must(err, "request of %s", uri)
	request := record.Event.(trace.Request)
	return fmt.Sprint(request.Code, " ", request.Server)
}

func requestsGoDownTheChain(ctx context.Context, beside *suite.T) {
	cp, t := beside.Shared(ctx, "chain")
	w := t.Install(ctx, t.WidgetCRD())
	for path, want := range map[string]string{
		"/apis/apiregistration.k8s.io/v1/apiservices": "200 aggregator",
		"/api/v1/namespaces":                          "200 kube-apiserver",
		w.Path:                                        "200 apiextensions",
		"/no/such/path":                               "404 not-found",
		"/apis/no.such.group/v1/things":               "404 not-found",
	} {
		t.Expect(answeredBy(ctx, t, cp, path)).To(gomega.Equal(want), path)
	}
}

func failedStage(ctx context.Context, beside *suite.T) {
	why := beside.NotLaunched(ctx, envtest.WithFaults("fail stage/apiextensions with=error"))
	beside.Expect(why).To(gomega.ContainSubstring("stage apiextensions: "))
	cp, t := beside.Launch(ctx)
	t.Answered(ctx, "/readyz", http.StatusOK)
	place := map[string]int{}
	for i, record := range cp.Trace().Records() {
		if stage, ok := record.Event.(trace.Stage); ok && stage.Phase == trace.End {
			place[stage.Name] = i
		}
	}
	order := []string{"not-found", "apiextensions", "kube-apiserver", "aggregator", "prepare"}
	for i, name := range order[1:] {
		t.Expect(place).To(gomega.And(gomega.HaveKey(name), gomega.HaveKey(order[i])))
		t.Expect(place[name]).To(gomega.BeNumerically(">", place[order[i]]), "stage %s ended before %s", name, order[i])
	}
}

func authenticationComesFirst(ctx context.Context, t *suite.T) {
	stranger := t.WithToken("not-a-token")
	for _, path := range []string{"/api/v1/namespaces", "/no/such/path"} {
		t.ExpectStatus(stranger.Get(ctx, path), suite.Unauthorized)
		t.ExpectStatus(t.As("jane").Get(ctx, path), suite.Forbidden)
	}
}

func deadlineIsCheckedFirst(ctx context.Context, t *suite.T) {
	stranger := t.WithToken("not-a-token")
	for _, timeout := range []string{"soon", "10"} {
		t.ExpectStatus(stranger.Get(ctx, "/api/v1/namespaces?timeout="+timeout), suite.BadRequest)
	}
	t.ExpectStatus(stranger.Get(ctx, "/api/v1/namespaces?timeout=10s"), suite.Unauthorized)
	t.Answered(ctx, "/api/v1/namespaces?timeout=10s", http.StatusOK)
}

func impersonationReplacesTheCaller(ctx context.Context, t *suite.T) {
	status := t.ExpectStatus(t.As("jane").Get(ctx, "/api/v1/namespaces"), suite.Forbidden)
	t.Expect(status.Message).
		To(gomega.Equal(`namespaces is forbidden: User "jane" cannot list resource "namespaces" in API group "" at ` +
			`the cluster scope`))
	t.Expect(status.Details.Kind).To(gomega.Equal("namespaces"))
	t.Answered(ctx, "/api/v1/namespaces", http.StatusOK)
	got := t.Ask(ctx, suite.Request{Path: "/version", Header: map[string]string{"Impersonate-Group": "system:masters"}})
	t.Expect(t.ExpectStatus(got, suite.BadRequest).Message).To(gomega.ContainSubstring("without impersonating a user"))
}

// answers returns one answer of each kind.
func answers(ctx context.Context, t *suite.T, header map[string]string) map[int]suite.Answer {
	found := map[int]suite.Answer{}
	ask := func(t *suite.T, path string) {
		got := t.Ask(ctx, suite.Request{Path: path, Header: header})
		found[got.Code] = got
	}
	ask(t, "/version")
	ask(t, "/no/such/path")
	ask(t.WithToken("not-a-token"), "/version")
	t.Expect(found).To(gomega.And(gomega.HaveLen(3), gomega.HaveKey(200), gomega.HaveKey(404), gomega.HaveKey(401)))
	return found
}

func answersAreNotForCaches(ctx context.Context, t *suite.T) {
	for _, got := range answers(ctx, t, nil) {
		t.Expect(got.Header.Get("Cache-Control")).To(gomega.Equal("no-cache, private"), "%s", got)
	}
}

func answersCarryAnAuditID(ctx context.Context, t *suite.T) {
	seen := map[string]int{}
	for code, got := range answers(ctx, t, nil) {
		id := got.Header.Get("Audit-Id")
		t.Expect(id).NotTo(gomega.BeEmpty(), "%s", got)
		t.Expect(seen).NotTo(gomega.HaveKey(id), "%s", got)
		seen[id] = code
	}
	for _, got := range answers(ctx, t, map[string]string{"Audit-Id": t.Name}) {
		t.Expect(got.Header.Get("Audit-Id")).To(gomega.Equal(t.Name), "%s", got)
	}
}
