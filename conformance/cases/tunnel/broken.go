package tunnel

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/fakes/stub"
)

var brokenCases = suite.Launching([]suite.Case{
	{ID: "S2/kubelet-that-is-gone-is-an-error", Failure: true, Test: kubeletThatIsGone,
		Source: "k8s.io/apiserver/pkg/registry/generic/rest/streamer.go; " +
			"k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, ErrorResponder",
		Promise: "When a kubelet is gone, logs and exec are answered 500 and the node proxy 503 or 500, each with a " +
			"Status that says why, and the rest of the API goes on."},
	{ID: "S2/kubelet-must-be-the-right-one", Failure: true, Test: kubeletMustBeTheRightOne,
		Source: "k8s.io/kubernetes/pkg/kubelet/client/kubelet_client.go, transportConfig and MakeInsecureTransport",
		Promise: "A kubelet whose certificate the server's authority has not signed gets no request; only a log can " +
			"be asked for all the same, with insecureSkipTLSVerifyBackend."},
	{ID: "S2/redirects-are-refused", Failure: true, Test: redirectsAreRefused,
		Source: "k8s.io/apiserver/pkg/registry/generic/rest/streamer.go, PreventRedirects; " +
			"k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, tryUpgrade",
		Promise: "A kubelet that redirects a log or exec elsewhere is not followed."},
})

// broken asserts that what needs the way to the node fails, and nothing else.
func broken(ctx context.Context, n *node) {
	n.ExpectStatus(n.Get(ctx, n.path+"/log?container=app"), suite.Unknown)
	n.ExpectStatus(n.Get(ctx, "/api/v1/nodes/"+nodeName+"/proxy/healthz"), suite.Unavailable)
	_, _, err := n.exec(ctx, "", "ls")
	n.Expect(err).To(gomega.HaveOccurred(), "exec without a way to the node")
	n.Answered(ctx, n.path, http.StatusOK)
	n.Answered(ctx, "/readyz", http.StatusOK)
}

func kubeletThatIsGone(ctx context.Context, t *suite.T) {
	n, _ := newNode(ctx, t, setting{})
	n.app.Log.End()
	n.Answered(ctx, n.path+"/log?container=app", http.StatusOK)
	t.Must(n.kubelet.Stop(ctx), "stop the kubelet")
	broken(ctx, n)
}

func kubeletMustBeTheRightOne(ctx context.Context, t *suite.T) {
	other, err := kubelet.Serve(memnet.Listen(), kubelet.Config{})
	t.Must(err, "serve another kubelet")
	t.Cleanup(other.Stop)
	n, _ := newNode(ctx, t, setting{ca: other.CA()})
	n.app.Log.Print("it snows")
	n.app.Log.End()
	status := t.ExpectStatus(n.Get(ctx, n.path+"/log?container=app"), suite.Unknown)
	t.Expect(status.Message).To(gomega.ContainSubstring("certificate signed by unknown authority"))
	broken(ctx, n)
	t.Expect(n.kubelet.Requests.Calls()).To(gomega.BeEmpty(), "requests to the wrong kubelet")
	got := n.Answered(ctx, n.path+"/log?container=app&insecureSkipTLSVerifyBackend=true", http.StatusOK)
	t.Expect(string(got.Body)).To(gomega.Equal("it snows\n"))
}

func redirectsAreRefused(ctx context.Context, t *suite.T) {
	n, _ := newNode(ctx, t, setting{})
	n.kubelet.Requests.Use(stub.Rule[kubelet.Request, kubelet.Answer]{
		When: func(r kubelet.Request) bool { return r.Path != "/healthz" },
		Answer: func(context.Context, kubelet.Request) (kubelet.Answer, error) {
			return kubelet.Answer{}, stub.Status{Code: http.StatusFound,
				Header: http.Header{"Location": {"https://" + nodeAddress + "/healthz"}}}
		}})
	status := t.ExpectStatus(n.Get(ctx, n.path+"/log?container=app"), suite.Unknown)
	t.Expect(status.Message).To(gomega.ContainSubstring("redirects forbidden"))
	_, _, err := n.exec(ctx, "", "ls")
	t.Expect(err).To(gomega.HaveOccurred(), "exec at a kubelet that redirects")
	for _, call := range n.kubelet.Requests.Calls() {
		t.Expect(call.Request.Path).NotTo(gomega.Equal("/healthz"), "the redirect was followed")
	}
}
