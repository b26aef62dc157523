package tunnel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/fakes/kubelet"
)

var streamCases = suite.Launching([]suite.Case{
	{ID: "S2/exec-runs-at-the-kubelet", Test: execRunsAtTheKubelet,
		Source: "k8s.io/kubernetes/pkg/registry/core/pod/rest/subresources.go, ExecREST; " +
			"k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, ExecLocation",
		Promise: "A command that is run in a container runs at the kubelet of its node: its arguments and input " +
			"arrive there, its output, its errors and its exit code here, apart."},
	{ID: "S2/port-forward-reaches-the-pod", Test: portForwardReachesThePod,
		Source: "k8s.io/kubernetes/pkg/registry/core/pod/rest/subresources.go, PortForwardREST; " +
			"k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, PortForwardLocation",
		Promise: "A port of a Pod can be talked to through the server, in both directions, and an error at the port " +
			"comes back as one of that connection."},
	{ID: "S2/streams-need-a-place-and-an-upgrade", Failure: true, Test: streamsNeedAPlaceAndAnUpgrade,
		Source: "k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, streamLocation; " +
			"k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go: an upgrade is required",
		Promise: "Exec and port-forward are refused with 400 for a Pod without a node, for an unknown container and " +
			"without an upgrade, and with 404 for no Pod; whoever may only read Pods is refused with 403."},
})

// url is that of a path of the server.
func (n *node) url(path string) *url.URL {
	target, err := url.Parse(n.Config.Host + path)
	n.Must(err, "the address of %s", path)
	return target
}

// exec runs a command in the container app.
func (n *node) exec(ctx context.Context, stdin string, command ...string) (stdout, stderr string, err error) {
	path := n.path + "/exec?container=app&stdin=true&stdout=true&stderr=true"
	for _, word := range command {
		path += "&command=" + word
	}
	executor, err := remotecommand.NewSPDYExecutor(n.Config, http.MethodPost, n.url(path))
	n.Must(err, "an executor")
	var out, failures bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader(stdin), Stdout: &out,
		Stderr: &failures})
	return out.String(), failures.String(), err
}

func execRunsAtTheKubelet(ctx context.Context, t *suite.T) {
	n, _ := newNode(ctx, t, setting{})
	n.app.Exec = func(_ context.Context, p *kubelet.Process) (int, error) {
		input, err := io.ReadAll(p.Stdin)
		fmt.Fprintf(p.Stdout, "%s: %s", p.Request.Command, input)
		fmt.Fprint(p.Stderr, "careful")
		return len(input), err
	}
	stdout, stderr, err := n.exec(ctx, "snow", "count", "flakes")
	t.Expect(stdout).To(gomega.Equal("[count flakes]: snow"))
	t.Expect(stderr).To(gomega.Equal("careful"))
	t.Expect(err).To(gomega.MatchError("command terminated with exit code 4"))
	_, _, err = n.exec(ctx, "", "nothing")
	t.Expect(err).NotTo(gomega.HaveOccurred(), "exit code 0")
	t.Expect(n.last().Path).To(gomega.Equal("/exec/default/web/app"))
	t.Expect(n.last().Method).To(gomega.Equal("POST"))
}

// forward talks to a port of the Pod: it sends, and returns what comes back, and the error.
func (n *node) forward(ctx context.Context, port int, send string) (received, failure string) {
	transport, upgrader, err := spdy.RoundTripperFor(n.Config)
	n.Must(err, "the transport of the clients")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url(n.path+"/portforward").String(), nil)
	n.Must(err, "a request to forward")
	streams, _, err := spdy.NegotiateStreaming(upgrader, &http.Client{Transport: transport}, request,
		portforward.PortForwardProtocolV1Name)
	n.Must(err, "forward port %d", port)
	defer streams.Close()
	defer context.AfterFunc(ctx, func() { _ = streams.Close() })()
	open := func(kind string) io.ReadWriteCloser {
		stream, err := streams.CreateStream(http.Header{
			http.CanonicalHeaderKey(corev1.StreamType):                 {kind},
			http.CanonicalHeaderKey(corev1.PortHeader):                 {fmt.Sprint(port)},
			http.CanonicalHeaderKey(corev1.PortForwardRequestIDHeader): {"0"}})
		n.Must(err, "open a stream of type %s", kind)
		return stream
	}
	errors := open(corev1.StreamTypeError)
	n.Must(errors.Close(), "say nothing about errors")
	data := open(corev1.StreamTypeData)
	n.Must(suite.ErrorOf(io.WriteString(data, send)), "send to port %d", port)
	n.Must(data.Close(), "say that this was all")
	answer, err := io.ReadAll(data)
	n.Must(err, "read from port %d", port)
	why, err := io.ReadAll(errors)
	n.Must(err, "read the errors of port %d", port)
	return string(answer), string(why)
}

func portForwardReachesThePod(ctx context.Context, t *suite.T) {
	n, _ := newNode(ctx, t, setting{})
	n.pod.Ports = map[int]func(context.Context, net.Conn) error{
		80: func(_ context.Context, conn net.Conn) error {
			sent, err := io.ReadAll(conn)
			fmt.Fprintf(conn, "you sent %s", sent)
			return err
		},
		81: func(context.Context, net.Conn) error { return fmt.Errorf("out of snow") },
	}
	received, failure := n.forward(ctx, 80, "flakes")
	t.Expect(received).To(gomega.Equal("you sent flakes"))
	t.Expect(failure).To(gomega.BeEmpty())
	t.Expect(n.last().Path).To(gomega.Equal("/portForward/default/web"))
	_, failure = n.forward(ctx, 81, "")
	t.Expect(failure).To(gomega.ContainSubstring("out of snow"))
}

func streamsNeedAPlaceAndAnUpgrade(ctx context.Context, t *suite.T) {
	n, _ := newNode(ctx, t, setting{})
	suite.Create(ctx, t, n.Kube.CoreV1().Pods("default").Create, suite.Pod("homeless", "app"))
	const exec = "/exec?command=ls&stdout=true"
	post := func(as *suite.T, path string) suite.Answer {
		return as.Ask(ctx, suite.Request{Method: "POST", Path: path})
	}
	for path, message := range map[string]string{
		"/api/v1/namespaces/default/pods/homeless" + exec:      "pod homeless does not have a host assigned",
		"/api/v1/namespaces/default/pods/homeless/portforward": "pod homeless does not have a host assigned",
		n.path + exec + "&container=other":                     "container other is not valid for pod web",
		n.path + exec: "a container name must be specified for pod web, " +
			"choose one of: [app side]",
		n.path + exec + "&container=app": "Upgrade request required",
		n.path + "/portforward":          "Upgrade request required",
	} {
		t.Expect(t.ExpectStatus(post(n.T, path), suite.BadRequest).Message).To(gomega.Equal(message), "POST %s", path)
	}
	t.ExpectStatus(post(n.T, "/api/v1/namespaces/default/pods/other"+exec), suite.NotFound)
	t.ExpectStatus(post(n.As("jane"), n.path+exec+"&container=app"), suite.Forbidden)
	t.Expect(n.kubelet.Requests.Calls()).To(gomega.BeEmpty(), "requests to the kubelet")
}
