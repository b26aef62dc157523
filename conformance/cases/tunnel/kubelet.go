package tunnel

import (
	"context"
	"net/http"
	"strings"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/fakes/stub"
)

var kubeletCases = suite.Launching([]suite.Case{
	{ID: "S2/log-comes-from-the-kubelet", Test: logComesFromTheKubelet,
		Source: "k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, LogLocation; " +
			"k8s.io/kubernetes/pkg/registry/core/pod/rest/log.go",
		Promise: "The log of a container is what the kubelet of its node says, as plain text: the server passes the " +
			"options on, and asks at the node's internal IP."},
	{ID: "S2/malformed-log-request-is-refused", Failure: true, Test: malformedLogRequestIsRefused,
		Source: "k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, validateContainer; " +
			"k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidatePodLogOptions",
		Promise: "A log of no container among several, or of an unknown one, is refused with 400, wrong options with " +
			"422, and the kubelet is not asked."},
	{ID: "S2/kubelet-errors-are-passed-on", Failure: true, Test: kubeletErrorsArePassedOn,
		Source: "k8s.io/apiserver/pkg/registry/generic/rest/response_checker.go, Check",
		Promise: "When a kubelet refuses a request for a log, the answer is a Status with its code and, but for 404, " +
			"its text."},
	{ID: "S2/node-proxy-reaches-the-kubelet", Test: nodeProxyReachesTheKubelet,
		Source: "k8s.io/kubernetes/pkg/registry/core/node/rest/proxy.go; " +
			"k8s.io/kubernetes/pkg/registry/core/node/strategy.go, ResourceLocation",
		Promise: "A request below /proxy of a node goes to its kubelet with method, path, query and body, without " +
			"the client's credentials, and the kubelet's answer comes back as it is."},
})

func logComesFromTheKubelet(ctx context.Context, t *suite.T) {
	n, _ := newNode(ctx, t, setting{})
	n.app.Log.Print("it snows", "it snows more")
	n.app.Log.End()
	got := n.Answered(ctx, n.path+"/log?container=app", http.StatusOK)
	t.Expect(string(got.Body)).To(gomega.Equal("it snows\nit snows more\n"))
	t.Expect(got.Header.Get("Content-Type")).To(gomega.HavePrefix("text/plain"))
	t.Expect(n.last().Path).To(gomega.Equal("/containerLogs/default/web/app"))
	t.Expect(n.last().Query).NotTo(gomega.Or(gomega.HaveKey("follow"), gomega.HaveKey("previous"),
		gomega.HaveKey("timestamps"), gomega.HaveKey("tailLines")))

	n.pod.Containers[1].Log.Restart()
	n.Answered(ctx,
		n.path+"/log?container=side&previous=true&timestamps=true&tailLines=2&sinceSeconds=60&limitBytes=100",
		http.StatusOK)
	t.Expect(n.last().Path).To(gomega.Equal("/containerLogs/default/web/side"))
	for name, value := range map[string]string{"previous": "true", "timestamps": "true", "tailLines": "2",
		"sinceSeconds": "60", "limitBytes": "100"} {
		t.Expect(n.last().Query).To(gomega.HaveKeyWithValue(name, []string{value}))
	}
	t.Expect(n.last().Query).NotTo(gomega.HaveKey("follow"))
	got = n.Answered(ctx, n.path+"/log?container=app&tailLines=1&follow=true", http.StatusOK)
	t.Expect(string(got.Body)).To(gomega.Equal("it snows more\n"))
	t.Expect(n.last().Query).To(gomega.HaveKeyWithValue("follow", []string{"true"}))
}

func malformedLogRequestIsRefused(ctx context.Context, t *suite.T) {
	n, _ := newNode(ctx, t, setting{})
	status := t.ExpectStatus(n.Get(ctx, n.path+"/log"), suite.BadRequest)
	t.Expect(status.Message).To(gomega.Equal("a container name must be specified for pod web, choose one of: " +
		"[app side]"))
	status = t.ExpectStatus(n.Get(ctx, n.path+"/log?container=other"), suite.BadRequest)
	t.Expect(status.Message).To(gomega.Equal("container other is not valid for pod web"))
	for _, query := range []string{"tailLines=-1", "limitBytes=0", "sinceSeconds=0",
		"sinceSeconds=1&sinceTime=2000-01-01T00:00:00Z"} {
		t.ExpectStatus(n.Get(ctx, n.path+"/log?container=app&"+query), suite.Invalid)
	}
	t.ExpectStatus(n.Get(ctx, "/api/v1/namespaces/default/pods/other/log"), suite.NotFound)
	t.Expect(n.kubelet.Requests.Calls()).To(gomega.BeEmpty(), "requests to the kubelet")
}

func kubeletErrorsArePassedOn(ctx context.Context, t *suite.T) {
	n, _ := newNode(ctx, t, setting{})
	const why = "the kubelet says why"
	for _, refusal := range []suite.Refusal{suite.BadRequest, suite.NotFound, suite.InternalError, suite.Forbidden} {
		remove := n.kubelet.Requests.Use(stub.Rule[kubelet.Request,
			kubelet.Answer]{Answer: func(context.Context, kubelet.Request) (kubelet.Answer, error) {
			return kubelet.Answer{}, stub.Status{Code: refusal.Code, Body: []byte(why)}
		}})
		status := t.ExpectStatus(n.Get(ctx, n.path+"/log?container=app"), refusal)
		t.Expect(strings.Contains(status.Message, why)).To(gomega.Equal(refusal != suite.NotFound), "%d: %s",
			refusal.Code, status.Message)
		remove()
	}
}

func nodeProxyReachesTheKubelet(ctx context.Context, t *suite.T) {
	n, _ := newNode(ctx, t, setting{})
	proxy := "/api/v1/nodes/" + nodeName + "/proxy"
	got := n.Answered(ctx, proxy+"/healthz", http.StatusOK)
	t.Expect(string(got.Body)).To(gomega.Equal("ok"))
	for _, same := range []string{"/api/v1/nodes/" + nodeName + ":10250/proxy",
		"/api/v1/nodes/https:" + nodeName + ":/proxy"} {
		n.Answered(ctx, same+"/healthz", http.StatusOK)
	}
	got = n.Answered(ctx, proxy+"/no/such/page?a=1&b=2", http.StatusNotFound)
	t.Expect(string(got.Body)).To(gomega.ContainSubstring("404: Page Not Found"))
	last := n.last()
	t.Expect(last.Path).To(gomega.Equal("/no/such/page"))
	t.Expect(last.Query.Encode()).To(gomega.Equal("a=1&b=2"))
	n.Get(ctx, proxy+"/no/such/folder/")
	t.Expect(n.last().Path).To(gomega.Equal("/no/such/folder/"))
	t.Expect(last.Header).NotTo(gomega.HaveKey("Authorization"), "the client's credentials")
	t.Expect(last.Header).To(gomega.HaveKey("X-Forwarded-Uri"))
	n.AnsweredTo(ctx, suite.Request{Method: "POST", Path: proxy + "/healthz", Body: "snow"},
		http.StatusMethodNotAllowed)
	t.Expect(n.last().Method).To(gomega.Equal("POST"))
	t.ExpectStatus(n.Get(ctx, "/api/v1/nodes/no-such-node/proxy/healthz"), suite.NotFound)
}
