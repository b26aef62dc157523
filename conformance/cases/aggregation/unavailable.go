package aggregation

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/fakes/stub"
)

const availability = "k8s.io/kube-aggregator/pkg/controllers/status/remote/remote_available_controller.go, sync"

var unavailableCases = suite.Launching([]suite.Case{
	{ID: "S14/missing-service-makes-unavailable", Failure: true, Test: missingServiceMakesUnavailable,
		Source: availability,
		Promise: "An APIService whose Service does not exist is not Available, reason ServiceNotFound, and its group " +
			"is answered 503 while others are served; once the Service is there it passes."},
	{ID: "S14/service-without-endpoints-is-unavailable", Failure: true, Test: serviceWithoutEndpoints,
		Source: availability,
		Promise: "An APIService is not Available while its Service has another port, no EndpointSlice, or none with " +
			"a ready endpoint, and the reason says which."},
	{ID: "S14/failing-discovery-makes-unavailable", Failure: true, Test: failingDiscovery,
		Source: availability,
		Promise: "A server that answers the path of its group version with anything but 2xx, such as 500 or a " +
			"redirect, is not Available, reason FailedDiscoveryCheck, with the code in the message."},
	{ID: "S14/untrusted-server-is-unavailable", Level: suite.Core, Failure: true, Test: untrustedServer,
		Source: availability + "; BuildTransportConfig",
		Promise: "A server whose certificate the APIService's caBundle has not signed gets no request at all: it is " +
			"not Available, and its group is 503."},
	{ID: "S14/insecure-and-ca-bundle-exclude-each-other", Level: suite.Core, Failure: true, Test: insecureAndBundle,
		Source: "k8s.io/kube-aggregator/pkg/apis/apiregistration/validation/validation.go",
		Promise: "An APIService that both skips TLS verification and has a caBundle, or whose name is not " +
			"VERSION.GROUP, is invalid."},
})

// notServed waits until the group is answered 503: its handler and its condition are the work
// of two controllers.
func (b *backend) notServed(ctx context.Context, version string) (got suite.Answer) {
	b.T.Eventually(ctx, func() int {
		got = b.T.Get(ctx, b.path(version))
		return got.Code
	}).Should(gomega.Equal(http.StatusServiceUnavailable), "%s is not answered as unavailable", b.path(version))
	return got
}

func missingServiceMakesUnavailable(ctx context.Context, beside *suite.T) {
	b, t := serve(ctx, beside)
	b.register(ctx, "v1")
	b.until(ctx, "v1", "False ServiceNotFound")
	t.Expect(b.condition(ctx, "v1").Message).To(gomega.Equal(`service/api in "` + b.Namespace + `" is not present`))
	got := b.notServed(ctx, "v1")
	t.Expect(string(got.Body)).To(gomega.Equal("service unavailable\n"))
	t.Answered(ctx, "/apis/apps/v1/deployments", http.StatusOK)
	t.Expect(b.Requests.Calls()).To(gomega.BeEmpty())
	b.makeService(ctx)
	b.until(ctx, "v1", "True Passed")
	t.Expect(b.condition(ctx, "v1").Message).To(gomega.Equal("all checks passed"))
	t.Served(ctx, b.path("v1"))
}

func serviceWithoutEndpoints(ctx context.Context, beside *suite.T) {
	b, t := serve(ctx, beside)
	b.makeService(ctx, func(spec *corev1.ServiceSpec) {
		*spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 8443}}}
	})
	b.register(ctx, "v1")
	b.until(ctx, "v1", "False ServicePortError")
	services := t.Kube.CoreV1().Services(b.Namespace)
	service := suite.Get(ctx, t, services.Get, "api")
	service.Spec.Ports[0].Port = 443
	suite.Update(ctx, t, services.Update, service)
	b.until(ctx, "v1", "False EndpointsNotFound")
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "api", Labels: map[string]string{discoveryv1.LabelServiceName: "api"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(443))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.80"},
			Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}},
	}
	slices := t.Kube.DiscoveryV1().EndpointSlices(b.Namespace)
	suite.Create(ctx, t, slices.Create, slice)
	b.until(ctx, "v1", "False MissingEndpoints")
	b.notServed(ctx, "v1")
}

func failingDiscovery(ctx context.Context, beside *suite.T) {
	b, t := serve(ctx, beside)
	b.makeService(ctx)
	for version, answer := range map[string]stub.Status{
		"v1": {Code: http.StatusInternalServerError},
		"v2": {Code: http.StatusFound, Header: http.Header{"Location": {"https://elsewhere.example.com"}}},
	} {
		remove := b.Requests.Reply(nil, answer)
		b.register(ctx, version)
		b.until(ctx, version, "False FailedDiscoveryCheck")
		t.Expect(b.condition(ctx, version).Message).
			To(gomega.MatchRegexp(`^failing or missing response from https://.*/apis/%s/%s: bad status from .*: %d$`,
				b.Group, version, answer.Code))
		b.notServed(ctx, version)
		remove()
		b.until(ctx, version, "True Passed")
		t.Served(ctx, b.path(version))
	}
	var checks []string // among requests for documents, which others make
	for _, call := range b.Requests.Calls() {
		checks = append(checks, fmt.Sprint(call.Request.Path, " ", call.Request.User, " ", call.Request.Groups))
	}
	t.Expect(checks).To(gomega.ContainElement("/apis/" + b.Group + "/v1 system:kube-aggregator [system:masters]"))
}

func untrustedServer(ctx context.Context, beside *suite.T) {
	b, t := serve(ctx, beside)
	b.makeService(ctx)
	wrong, err := b.WrongCA()
	t.Must(err, "make a certificate authority")
	b.register(ctx, "v1", func(spec *apiregistrationv1.APIServiceSpec) { spec.CABundle = wrong })
	b.until(ctx, "v1", "False FailedDiscoveryCheck")
	t.Expect(b.condition(ctx, "v1").Message).To(gomega.ContainSubstring("certificate signed by unknown authority"))
	b.notServed(ctx, "v1")
	t.Expect(b.Requests.Calls()).To(gomega.BeEmpty())
}

func insecureAndBundle(ctx context.Context, beside *suite.T) {
	b, t := serve(ctx, beside)
	refused := func(change func(*apiregistrationv1.APIService), field string) {
		service := &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: b.name("v1")},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: b.Group, Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 100, CABundle: b.CA(),
				Service: &apiregistrationv1.ServiceReference{Namespace: b.Namespace, Name: "api"},
			},
		}
		change(service)
		_, err := b.APIServices.Create(ctx, service, suite.DryRun)
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{field}))
	}
	refused(func(s *apiregistrationv1.APIService) { s.Spec.InsecureSkipTLSVerify = true }, "spec.insecureSkipTLSVerify")
	refused(func(s *apiregistrationv1.APIService) { s.Name = "v2." + b.Group }, "metadata.name")
	refused(func(s *apiregistrationv1.APIService) { s.Spec.GroupPriorityMinimum = 20001 }, "spec.groupPriorityMinimum")
}
