package startup

import (
	"context"
	"net/http"
	"strings"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var healthCases = []suite.Case{
	{ID: "S15/failed-check-withholds-its-reason", Failure: true, Needs: suite.Launch,
		Test:   failedCheckWithholdsItsReason,
		Source: "k8s.io/apiserver/pkg/server/healthz/healthz.go, handleRootHealth",
		Promise: "If a check fails, the report comes without being asked for, with 500, its verdict last, and no " +
			"reason; with the check excluded the answer is 200."},
	{ID: "S15/livez-grace-period-spares-hooks", Failure: true, Needs: suite.Launch, Test: livezGracePeriod,
		Source: "k8s.io/apiserver/pkg/server/healthz.go, AddBootSequenceHealthChecks, delayedHealthCheck",
		Promise: "Within --livez-grace-period a post-start hook of the head of the chain that has not returned does " +
			"not fail /livez, as it does fail /readyz and /healthz; without the flag it fails /livez too."},
	{ID: "S15/strangers-may-ask-for-health", Level: suite.Core, Failure: true, Test: strangersMayAskForHealth,
		Source: "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, " +
			"system:public-info-viewer",
		Promise: "An unauthenticated user may read /healthz, /livez, /readyz and /version, and neither a check of " +
			"its own nor anything else."},
	{ID: "S15/health-is-plain-text", Level: suite.Core, Failure: true, Test: healthIsPlainText,
		Source: "k8s.io/apiserver/pkg/server/healthz/healthz.go, handleRootHealth; " +
			"k8s.io/apiserver/pkg/endpoints/filters/cachecontrol.go",
		Promise: "A health check is answered in plain text that no client may take for anything else, and no cache " +
			"may keep; a report has a line for each check, in the same order at each path and each time, and its " +
			"verdict last."},
}

func failedCheckWithholdsItsReason(ctx context.Context, beside *suite.T) {
	const hook = "poststarthook/scheduling/bootstrap-system-priority-classes"
	cp, t := beside.Launch(ctx, envtest.WithFaults("hold hook/scheduling/bootstrap-system-priority-classes"))
	got := t.Answered(ctx, "/readyz", http.StatusInternalServerError)
	states, verdict := checks(t, got)
	t.Expect(states).To(gomega.HaveKeyWithValue(hook, "[-]failed: reason withheld"), "%s", got)
	t.Expect(states).To(gomega.HaveKeyWithValue("ping", "[+]ok"), "%s", got)
	t.Expect(verdict).To(gomega.Equal("readyz check failed"), "%s", got)
	own := t.Answered(ctx, "/readyz/"+hook, http.StatusInternalServerError)
	t.Expect(string(own.Body)).To(gomega.ContainSubstring("not finished"), "%s", own)
	t.Until(ctx, "/readyz?exclude="+hook, http.StatusOK)
	t.Must(cp.Faults().Release("hook/scheduling/bootstrap-system-priority-classes"), "release the hook")
}

func livezGracePeriod(ctx context.Context, beside *suite.T) {
	const hold = "hold hook/apiservice-openapiv3-controller"
	for flag, livez := range map[string]int{"--livez-grace-period=1h": http.StatusOK,
		"--livez-grace-period=0s": http.StatusInternalServerError} {
		cp, t := beside.Launch(ctx, envtest.WithFaults(hold), envtest.WithFlags(flag))
		t.Answered(ctx, "/readyz", http.StatusInternalServerError)
		t.Answered(ctx, "/healthz", http.StatusInternalServerError)
		t.Until(ctx, "/livez", livez, "with %s", flag)
		t.Must(cp.Faults().Release("hook/apiservice-openapiv3-controller"), "release the hook")
	}
}

func strangersMayAskForHealth(ctx context.Context, t *suite.T) {
	stranger := t.As("system:anonymous", "system:unauthenticated")
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/version"} {
		stranger.Answered(ctx, path, http.StatusOK)
	}
	for _, path := range []string{"/readyz/ping", "/metrics", "/", "/api", "/openapi/v2"} {
		stranger.ExpectStatus(stranger.Get(ctx, path), suite.Forbidden)
	}
}

func healthIsPlainText(ctx context.Context, t *suite.T) {
	for _, path := range []string{"/readyz", "/livez", "/healthz"} {
		for _, asked := range []string{path, path + "?verbose", path + "?verbose=false",
			path + "?verbose&exclude=ping"} {
			got := t.Answered(ctx, asked, http.StatusOK)
			t.Expect(got.Header.Get("Content-Type")).To(gomega.Equal("text/plain; charset=utf-8"), asked)
			t.Expect(got.Header.Get("X-Content-Type-Options")).To(gomega.Equal("nosniff"), asked)
			t.Expect(got.Header.Get("Cache-Control")).To(gomega.Equal("no-cache, private"), asked)
		}
		report := func(path string) []string {
			return strings.Split(string(t.Answered(ctx, path, http.StatusOK).Body), "\n")
		}
		lines := report(path + "?verbose")
		t.Expect(lines[len(lines)-2:]).To(gomega.Equal([]string{path[1:] + " check passed", ""}), path)
		t.Expect(lines[:len(lines)-2]).To(gomega.HaveEach(gomega.MatchRegexp(`^\[\+\]\S+ ok$`)), path)
		t.Expect(report(path+"?verbose")).To(gomega.Equal(lines), "another order")
		excluded := report(path + "?exclude=ping&verbose&exclude=etcd")
		t.Expect(excluded).To(gomega.HaveLen(len(lines)), path)
		t.Expect(excluded).To(gomega.ContainElements("[+]ping excluded: ok", "[+]etcd excluded: ok"), path)
		t.Expect(string(t.Answered(ctx, path+"?exclude=nothing&exclude=nobody", http.StatusOK).Body)).
			To(gomega.Equal("ok"), path)
		warned := report(path + "?exclude=nothing&exclude=nobody&verbose")
		t.Expect(warned[len(warned)-3]).
			To(gomega.Equal(`warn: some health checks cannot be excluded: no matches for "nobody","nothing"`), path)
		t.Answered(ctx, path+"/", http.StatusNotFound)
	}
}
