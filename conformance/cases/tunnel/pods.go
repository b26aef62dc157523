package tunnel

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"snowglobe.test/conformance/suite"
)

var podCases = suite.Launching([]suite.Case{
	{ID: "S2/pod-proxy-reaches-the-pod", Failure: true, Test: podProxyReachesThePod,
		Source: "k8s.io/kubernetes/pkg/registry/core/pod/rest/subresources.go, ProxyREST; " +
			"k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, ResourceLocation",
		Promise: "A request below /proxy of a Pod goes to the port that is named, or to the first of its containers, " +
			"with method, path, query and body, and the answer comes back; a Pod without an address, or with one of " +
			"the server's own machine, is refused with 400."},
	{ID: "S2/service-proxy-reaches-an-endpoint", Failure: true, Test: serviceProxyReachesAnEndpoint,
		Source: "k8s.io/kubernetes/pkg/registry/core/service/storage/storage.go, ResourceLocation; " +
			"k8s.io/kubernetes/pkg/registry/core/service/proxy.go",
		Promise: "A request below /proxy of a Service goes to an endpoint of the port that is named, by name or " +
			"number, if it is a Pod of its namespace; an unknown port, and a Service without endpoints, is 503."},
})

const podIP = "192.0.2.50"

// page serves at a port of the Pod, and answers what it was asked.
func page(t *suite.T, network *suite.Network, port int) {
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the client may be gone
		w.Header().Set("X-Page", "snow")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%d: %s %s %s", port, r.Method, r.URL.RequestURI(), body)
	})}
	listener := network.At(fmt.Sprintf("%s:%d", podIP, port))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func(context.Context) error { return server.Close() })
}

// withPages launches a control plane with the Pod "pages", which serves at two ports.
func withPages(ctx context.Context, t *suite.T) *suite.T {
	network := &suite.Network{}
	page(t, network, 8080)
	page(t, network, 8081)
	_, other := t.Launch(ctx, network.Option())
	pod(ctx, other, "pages", podIP)
	return other
}

// pod creates a Pod that has an address, if any.
func pod(ctx context.Context, t *suite.T, name, ip string) {
	pods := t.Kube.CoreV1().Pods(metav1.NamespaceDefault)
	object := suite.Pod(name, "silent", "app")
	object.Spec.Containers[1].Ports = []corev1.ContainerPort{{ContainerPort: 8080}, {ContainerPort: 8081}}
	made := suite.Create(ctx, t, pods.Create, object)
	if ip != "" {
		made.Status.PodIP, made.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
		suite.Update(ctx, t, pods.UpdateStatus, made)
	}
}

// says asserts what the page behind a path answers.
func says(ctx context.Context, t *suite.T, request suite.Request, answer string) {
	got := t.AnsweredTo(ctx, request, http.StatusTeapot)
	t.Expect(got.Header.Get("X-Page")).To(gomega.Equal("snow"), "%s", got)
	t.Expect(string(got.Body)).To(gomega.Equal(answer), "%s", got)
}

func podProxyReachesThePod(ctx context.Context, beside *suite.T) {
	t := withPages(ctx, beside)
	const pods = "/api/v1/namespaces/default/pods/"
	says(ctx, t, suite.Request{Path: pods + "pages/proxy/"}, "8080: GET / ")
	says(ctx, t, suite.Request{Path: pods + "pages/proxy/a/b?c=d&c=e"}, "8080: GET /a/b?c=d&c=e ")
	says(ctx, t, suite.Request{Path: pods + "pages/proxy/a/b/"}, "8080: GET /a/b/ ")
	says(ctx, t, suite.Request{Path: pods + "pages:8081/proxy/a"}, "8081: GET /a ")
	says(ctx, t, suite.Request{Path: pods + "http:pages:8081/proxy/a"}, "8081: GET /a ")
	says(ctx, t, suite.Request{Path: pods + "pages/proxy/a", Method: http.MethodPut, Body: []byte("flakes")},
		"8080: PUT /a flakes")
	says(ctx, t, suite.Request{Path: pods + "pages/proxy/a", Method: http.MethodDelete}, "8080: DELETE /a ")
	t.ExpectStatus(t.Get(ctx, pods+"nobody/proxy/"), suite.NotFound)
	t.ExpectStatus(t.Get(ctx, pods+"ftp:pages:8080/proxy/"), suite.BadRequest)
	for name, ip := range map[string]string{"homeless": "", "own": "127.0.0.1", "local": "169.254.169.254"} {
		pod(ctx, t, name, ip)
		status := t.ExpectStatus(t.Get(ctx, pods+name+"/proxy/"), suite.BadRequest)
		t.Expect(status.Message).To(gomega.Equal("address not allowed"), name)
	}
	t.ExpectStatus(t.Get(ctx, pods+"pages:8082/proxy/"), suite.Unavailable)
	t.ExpectStatus(t.As("jane").Get(ctx, pods+"pages/proxy/"), suite.Forbidden)
}

func serviceProxyReachesAnEndpoint(ctx context.Context, beside *suite.T) {
	t := withPages(ctx, beside)
	const services = "/api/v1/namespaces/default/services/"
	suite.Create(ctx, t, t.Kube.CoreV1().Services(metav1.NamespaceDefault).Create,
		suite.Service("pages", func(spec *corev1.ServiceSpec) {
			spec.Ports = []corev1.ServicePort{{Name: "first", Port: 80, TargetPort: intstr.FromInt32(8080)},
				{Name: "second", Port: 81, TargetPort: intstr.FromInt32(8081)}}
		}))
	for _, port := range []string{"pages:first", "pages:80", "pages:third", "nobody:first"} {
		got := t.Get(ctx, services+port+"/proxy/")
		t.Expect(got.Code).To(gomega.BeElementOf(http.StatusServiceUnavailable, http.StatusNotFound), "%s", got)
	}
	suite.Create(ctx, t, t.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create,
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "pages-1",
				Labels: map[string]string{discoveryv1.LabelServiceName: "pages"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{podIP},
				Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: "pages"}}},
			Ports: []discoveryv1.EndpointPort{{Name: new("first"), Port: new(int32(8080))},
				{Name: new("second"), Port: new(int32(8081))}},
		})
	t.Until(ctx, services+"pages:first/proxy/", http.StatusTeapot, "the endpoint is not reached")
	says(ctx, t, suite.Request{Path: services + "pages:first/proxy/a/?b=c"}, "8080: GET /a/?b=c ")
	says(ctx, t, suite.Request{Path: services + "pages:second/proxy/a"}, "8081: GET /a ")
	says(ctx, t, suite.Request{Path: services + "pages:81/proxy/a"}, "8081: GET /a ")
	says(ctx, t, suite.Request{Path: services + "http:pages:first/proxy/a", Method: http.MethodPost,
		Body: []byte("flakes")}, "8080: POST /a flakes")
	t.ExpectStatus(t.Get(ctx, services+"pages:third/proxy/"), suite.Unavailable)
}
