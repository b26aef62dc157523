package delegation

import (
	"context"
	"net/http"
	"slices"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/trace"
)

const syncSignal = "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go, the hook crd-informer-synced"

var signalCases = []suite.Case{
	{ID: "S11/known-custom-resource-is-never-404", Failure: true, Needs: suite.Launch,
		Test:   knownCustomResourceIsNever404,
		Source: syncSignal + "; k8s.io/apiserver/pkg/util/notfoundhandler/not_found_handler.go: kubernetes#104342",
		Promise: "A server that starts on a store with custom resources answers 503 for them until it knows their " +
			"definitions, then 200: never 404, which would tell a garbage collector that they are gone."},
	{ID: "S11/crd-informer-synced-is-a-check", Failure: true, Needs: suite.Launch, Test: syncedIsACheck,
		Source: syncSignal + "; k8s.io/apiserver/pkg/server/genericapiserver.go, MuxAndDiscoveryComplete",
		Promise: "While the CRD informer has not synced, /readyz is 500 because of poststarthook/crd-informer-synced " +
			"alone; the server signals MuxAndDiscoveryComplete after it, and not before."},
	{ID: "S11/every-method-waits-for-the-CRDs", Failure: true, Needs: suite.Launch, Test: everyMethodWaits,
		Source: "k8s.io/apiserver/pkg/util/notfoundhandler/not_found_handler.go, ServeHTTP",
		Promise: "Before the CRDs are known, an unknown path is 503 for every method, with Retry-After and a Status " +
			"that says why."},
	{ID: "S11/removed-custom-resource-is-404", Level: suite.Core, Test: removedCustomResourceIs404,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, ServeHTTP: what it does " +
			"not know goes to its delegate",
		Promise: "When its CRD is gone, the path of a custom resource is answered as any unknown path: 404 in " +
			"plain text."},
	{ID: "S11/unserved-version-is-404", Level: suite.Core, Failure: true, Test: unservedVersionIs404,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, ServeHTTP",
		Promise: "Another version, another resource and another scope of an installed custom resource are answered " +
			"404 by the end of the chain, and not as an empty list."},
	{ID: "S11/unknown-path-asks-for-permission-first", Level: suite.Core, Failure: true, Test: unknownPathAsksFirst,
		Source: "k8s.io/apiserver/pkg/server/config.go, DefaultBuildHandlerChain: one filter chain stands before " +
			"all servers of the chain",
		Promise: "Who may not read an unknown path is told 403, not 404, in whatever group it seems to be."},
}

// withoutCRDs holds a server's knowledge of definitions.
var withoutCRDs = []string{"hold hook/start-apiextensions-informers", "hold hook/crd-informer-synced"}

func knownCustomResourceIsNever404(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	w := t.Install(ctx, t.WidgetCRD())
	w.Make(ctx, "one")
	server := cp.Servers()[0]
	t.Must(server.Stop(ctx), "stop the server")
	for _, rule := range withoutCRDs {
		t.Inject(cp, rule)
	}
	ready := t.Restarting(ctx, server)
	// Hooks begin while the server serves already.
	t.Eventually(ctx, func() []string { return cp.Faults().HeldHooks(server.Name()) }).
		Should(gomega.HaveLen(len(withoutCRDs)))
	t.ExpectStatus(t.Get(ctx, w.Path+"/one"), suite.Unavailable)
	t.Must(cp.Faults().Release("hook/start-apiextensions-informers"), "release the informers")
	t.Eventually(ctx, func() int {
		got := t.Get(ctx, w.Path+"/one")
		t.Expect(got.Code).NotTo(gomega.Equal(http.StatusNotFound), "%s", got)
		return got.Code
	}).Should(gomega.Equal(http.StatusOK))
	// It can't know yet that there are no others.
	t.Answered(ctx, "/apis/"+w.Resource.Group+"/v1/gadgets", http.StatusServiceUnavailable)
	t.Must(cp.Faults().Release("hook/crd-informer-synced"), "release the signal")
	t.Until(ctx, "/apis/"+w.Resource.Group+"/v1/gadgets", http.StatusNotFound)
	t.Answered(ctx, w.Path+"/one", http.StatusOK)
	ready()
}

// complete reports whether a server has said that it knows all paths.
func complete(cp *envtest.ControlPlane) bool {
	return slices.ContainsFunc(cp.Trace().Records(), func(record trace.Record) bool {
		return record.Event == trace.Signal{Name: "MuxAndDiscoveryComplete"}
	})
}

func syncedIsACheck(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithFaults("hold hook/crd-informer-synced"))
	t.Eventually(ctx, t.Readyz).WithContext(ctx).Should(gomega.Equal(
		`500 ["[-]poststarthook/crd-informer-synced failed: reason withheld" "readyz check failed"]`))
	t.Expect(complete(cp)).To(gomega.BeFalse(), "the server says that it knows all paths")
	t.Must(cp.Faults().Release("hook/crd-informer-synced"), "release the signal")
	t.Eventually(ctx, t.Readyz).WithContext(ctx).Should(gomega.Equal(`200 ["readyz check passed"]`))
	t.Eventually(ctx, func() bool { return complete(cp) }).Should(gomega.BeTrue(),
		"the server never says that it knows all paths")
}

func everyMethodWaits(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithFaults("hold hook/crd-informer-synced"))
	path := "/apis/" + t.Name + suite.GroupSuffix + "/v1/things/one"
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		got := t.Ask(ctx, suite.Request{Path: path, Method: method})
		status := t.ExpectStatus(got, suite.Unavailable)
		t.Expect(got.Header.Get("Retry-After")).To(gomega.Equal("5"), "%s", got)
		t.Expect(status.Message).To(gomega.ContainSubstring("before all known HTTP paths have been installed"))
	}
	t.Must(cp.Faults().Release("hook/crd-informer-synced"), "release the signal")
	t.Eventually(ctx, func() int { return t.Ask(ctx, suite.Request{Path: path, Method: http.MethodDelete}).Code }).
		Should(gomega.Equal(http.StatusNotFound))
}

// endOfTheChain asserts that a path is answered by the end of the chain.
func endOfTheChain(ctx context.Context, t *suite.T, path string) {
	got := t.Answered(ctx, path, http.StatusNotFound)
	t.Expect(string(got.Body)).To(gomega.Equal("404 page not found\n"), "%s", got)
}

func removedCustomResourceIs404(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	t.Answered(ctx, w.Path, http.StatusOK)
	w.RemoveCRD(ctx)
	t.Until(ctx, w.Path, http.StatusNotFound)
	endOfTheChain(ctx, t, w.Path)
	endOfTheChain(ctx, t, w.Path+"/one")
}

func unservedVersionIs404(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	group := "/apis/" + w.Resource.Group
	endOfTheChain(ctx, t, group+"/v9/widgets")
	endOfTheChain(ctx, t, group+"/v1/gadgets")
	endOfTheChain(ctx, t, group+"/v1/namespaces/default/widgets")
	t.Answered(ctx, w.Path, http.StatusOK)
}

func unknownPathAsksFirst(ctx context.Context, t *suite.T) {
	jane := t.As("jane")
	for _, path := range []string{"/no/such/path", "/apis/no.such.group/v1/things", "/api/v9/things"} {
		t.ExpectStatus(jane.Get(ctx, path), suite.Forbidden)
		t.Answered(ctx, path, http.StatusNotFound)
	}
}
