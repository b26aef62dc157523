// Package aggregation has the cases about API servers behind the aggregator. Behind it is a real
// aggregated server of the tests, so that a case sees both what the client gets and what the
// server was sent.
package aggregation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/utils/ptr"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/fakes/aggregated"
)

// Cases are the cases of this area.
var Cases = slices.Concat(proxyCases, unavailableCases, mergedCases)

// backend is an aggregated server of a case. It serves Widgets, cluster-scoped, in v1 and v2
// of a group of its own.
type backend struct {
	*aggregated.Server
	T           *suite.T
	APIServices aggregatorclient.APIServiceInterface
	Group       string
	Namespace   string // of its Service
	External    string // the host that its Service stands for
}

// serve starts an aggregated server and its Service beside a control plane that cases
// share. No APIService leads to it yet.
func serve(ctx context.Context, beside *suite.T) (*backend, *suite.T) {
	_, t := beside.Shared(ctx, "aggregation")
	client, err := aggregatorclient.NewForConfig(t.Config)
	t.Must(err, "client for APIServices")
	b := &backend{
		T: t, APIServices: client.APIServices(), Group: t.Name + suite.GroupSuffix,
		Namespace: t.Namespace(ctx), External: t.Name + ".example.com",
	}
	b.Server, err = aggregated.Serve(t.AtAddress(b.External), aggregated.Config{
		Resources: []aggregated.Resource{b.widgets("v1"), b.widgets("v2")},
		Hosts:     []string{"api." + b.Namespace + ".svc"},
	})
	t.Must(err, "serve an aggregated API server")
	t.Cleanup(b.Stop)
	return b, t
}

func (b *backend) widgets(version string) aggregated.Resource {
	return aggregated.Resource{Group: b.Group, Version: version, Plural: "widgets", Kind: "Widget",
		ShortNames: []string{"wdg"}}
}

// makeService makes a Service, which leads to the server unless that is changed.
func (b *backend) makeService(ctx context.Context, change ...func(*corev1.ServiceSpec)) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "api"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: b.External},
	}
	for _, f := range change {
		f(&service.Spec)
	}
	services := b.T.Kube.CoreV1().Services(b.Namespace)
	suite.Create(ctx, b.T, services.Create, service)
}

// register creates the APIService of a version.
func (b *backend) register(ctx context.Context, version string, change ...func(*apiregistrationv1.APIServiceSpec)) {
	service := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: b.name(version)},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: b.Group, Version: version, GroupPriorityMinimum: 100, VersionPriority: 100, CABundle: b.CA(),
			Service: &apiregistrationv1.ServiceReference{Namespace: b.Namespace, Name: "api", Port: new(int32(443))},
		},
	}
	for _, f := range change {
		f(&service.Spec)
	}
	suite.Create(ctx, b.T, b.APIServices.Create, service)
}

func (b *backend) name(version string) string { return version + "." + b.Group }

// path of the Widgets in a version.
func (b *backend) path(version string) string { return "/apis/" + b.Group + "/" + version + "/widgets" }

// available returns the Available condition: its status and reason.
func (b *backend) available(ctx context.Context, version string) string {
	condition := b.condition(ctx, version)
	return fmt.Sprint(cmp.Or(condition.Status, "none"), " ", condition.Reason)
}

func (b *backend) condition(ctx context.Context, version string) apiregistrationv1.APIServiceCondition {
	service := suite.Get(ctx, b.T, b.APIServices.Get, b.name(version))
	found := helper.GetAPIServiceConditionByType(service, apiregistrationv1.Available)
	return ptr.Deref(found, apiregistrationv1.APIServiceCondition{})
}

// until waits until the Available condition has a status and a reason.
func (b *backend) until(ctx context.Context, version, wanted string) {
	b.T.Eventually(ctx, b.available).WithArguments(version).Should(gomega.Equal(wanted), "APIService %s",
		b.name(version))
}

// ready is serve with a Service and an APIService for v1, through which Widgets are served.
func ready(ctx context.Context, beside *suite.T) (*backend, *suite.T) {
	b, t := serve(ctx, beside)
	b.makeService(ctx)
	b.register(ctx, "v1")
	b.until(ctx, "v1", "True Passed")
	t.Served(ctx, b.path("v1"))
	return b, t
}

// client for Widgets through the aggregator.
func (b *backend) client() dynamic.ResourceInterface {
	return b.T.Dynamic.Resource(schema.GroupVersionResource{Group: b.Group, Version: "v1", Resource: "widgets"})
}

func (b *backend) resource() schema.GroupResource {
	return schema.GroupResource{Group: b.Group, Resource: "widgets"}
}

// widget returns an object without creating it.
func (b *backend) widget(name, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": b.Group + "/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"color": color},
	}}
}

// put changes an object behind the aggregator's back.
func (b *backend) put(name, color string) {
	b.T.Must(suite.ErrorOf(b.Put(b.widget(name, color))), "put Widget %s", name)
}

// last returns the newest request for Widgets, which the aggregator does not make by itself.
func (b *backend) last() aggregated.Request {
	for _, call := range slices.Backward(b.Requests.Calls()) {
		if call.Request.Resource == "widgets" {
			return call.Request
		}
	}
	b.T.Expect(b.Requests.Calls()).NotTo(gomega.BeEmpty(), "no request for Widgets reached the aggregated server")
	return aggregated.Request{}
}

// notDiscovery matches what a client asks for, and not the aggregator.
func notDiscovery(r aggregated.Request) bool { return !r.Discovers() }
