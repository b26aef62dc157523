// Package delegation has the cases about the chain of servers: which of them answers a request, and
// what unknown paths are told before all of them know theirs. Cases hold a part of the start to
// look at what is true until then.
package delegation

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

// Cases are the cases of this area.
var Cases = slices.Concat(delegationCases, filterCases, signalCases)

var delegationCases = []suite.Case{
	{ID: "S12/built-in-path-is-answered", Level: suite.Core, Test: builtInPathIsAnswered,
		Source: "k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go: a local APIService delegates to the " +
			"kube-apiserver",
		Promise: "The paths of the core group and of a named group are answered by the server that has them."},
	{ID: "S10/custom-resource-path-is-answered", Level: suite.Core, Test: customResourcePathIsAnswered,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go",
		Promise: "The path of a custom resource is answered, although the servers in front of apiextensions do not " +
			"know it."},
	{ID: "S11/unknown-path-is-404", Failure: true, Test: unknownPathIs404,
		Source: "k8s.io/apiserver/pkg/util/notfoundhandler/not_found_handler.go",
		Promise: "A path that no server of the chain knows, in a group or not, is answered 404 by the end of the " +
			"chain: plain text, no Status."},
	{ID: "S11/unknown-path-is-503-before-CRDs-are-known", Failure: true, Needs: suite.Launch,
		Test: unknownPathIs503BeforeCRDsAreKnown,
		Source: "k8s.io/kubernetes/cmd/kube-apiserver/app/server.go, CreateServerChain, and " +
			"k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go, the hook crd-informer-synced: " +
			"kubernetes#104748",
		Promise: "Until the CRD informer has synced, an unknown path is answered 503 with a time to retry after, " +
			"never 404, while built-in paths work."},
	{ID: "S12/unknown-resource-is-404", Level: suite.Core, Failure: true, Test: unknownResourceIs404,
		Source: "k8s.io/apiserver/pkg/server/handler.go and pkg/endpoints/installer.go: the group version is " +
			"routed, the rest is not",
		Promise: "An unknown resource or version of a known group is answered 404 with a Status that names no object."},
	{ID: "S12/missing-object-is-404", Level: suite.Core, Failure: true, Test: missingObjectIs404,
		Source:  "k8s.io/apimachinery/pkg/api/errors/errors.go, NewNotFound",
		Promise: "A missing object is answered 404 with a Status that names the object, its resource and its group."},
	{ID: "S12/method-is-not-allowed", Level: suite.Core, Failure: true, Test: methodIsNotAllowed,
		Source:  "k8s.io/apiserver/pkg/server/handler.go, the error handler of the container",
		Promise: "A method that a known path does not support is answered 405 with a Status."},
	{ID: "S14/local-apiservices-are-available", Test: localAPIServicesAreAvailable,
		Source: "k8s.io/kube-aggregator/pkg/controllers/status/local",
		Promise: "Every built-in group version has an APIService without a service, which is Available because it " +
			"is Local."},
	{ID: "S14/custom-group-has-an-apiservice", Test: customGroupHasAnAPIService,
		Source:  "k8s.io/kubernetes/pkg/controlplane/controller/crdregistration",
		Promise: "The group version of a CRD gets a Local, managed APIService by itself, and loses it with the CRD."},
	{ID: "S14/deleted-apiservice-comes-back", Failure: true, Test: deletedAPIServiceComesBack,
		Source:  "k8s.io/kube-aggregator/pkg/controllers/autoregister",
		Promise: "If the managed APIService of a CRD's group version is deleted, it is registered again."},
	{ID: "S1/index-lists-the-whole-chain", Test: indexListsTheChain,
		Source:  "k8s.io/apiserver/pkg/server/routes/index.go over the delegation's ListedPaths",
		Promise: "/ lists paths of every server of the chain, sorted."},
}

// typeOf returns the apiVersion and kind of an answer.
func typeOf(t *suite.T, got suite.Answer) string {
	meta := suite.JSON[metav1.TypeMeta](t, got)
	return meta.APIVersion + " " + meta.Kind
}

func builtInPathIsAnswered(ctx context.Context, t *suite.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/default":                          "v1 Namespace",
		"/api/v1/configmaps?limit=1":                          "v1 ConfigMapList",
		"/apis/apps/v1/deployments?limit=1":                   "apps/v1 DeploymentList",
		"/apis/apiregistration.k8s.io/v1/apiservices?limit=1": "apiregistration.k8s.io/v1 APIServiceList",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=1": "apiextensions.k8s.io/v1 " +
			"CustomResourceDefinitionList",
	} {
		t.Expect(typeOf(t, t.Get(ctx, path))).To(gomega.Equal(want), path)
	}
}

func customResourcePathIsAnswered(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	w.Make(ctx, "one")
	gv := w.Resource.GroupVersion().String()
	t.Expect(typeOf(t, t.Get(ctx, w.Path))).To(gomega.Equal(gv + " WidgetList"))
	t.Expect(typeOf(t, t.Get(ctx, w.Path+"/one"))).To(gomega.Equal(gv + " Widget"))
	got := t.Get(ctx, w.Path+"/two")
	t.Expect(t.ExpectStatus(got, suite.NotFound).Details.Name).To(gomega.Equal("two"), "%s", got)
}

func unknownPathIs404(ctx context.Context, t *suite.T) {
	group := t.Name + suite.GroupSuffix
	for _, path := range []string{
		"/" + t.Name,
		"/apis/" + group,
		"/apis/" + group + "/v1",
		"/apis/" + group + "/v1/things",
		"/apis/" + group + "/v1/namespaces/default/things/one",
	} {
		got := t.Answered(ctx, path, http.StatusNotFound)
		t.Expect(string(got.Body)).To(gomega.Equal("404 page not found\n"), "%s", got)
	}
}

func unknownPathIs503BeforeCRDsAreKnown(ctx context.Context, t *suite.T) {
	const hook = "crd-informer-synced"
	cp, other := t.Launch(ctx, envtest.WithFaults("hold hook/"+hook))
	unknown := "/apis/" + t.Name + suite.GroupSuffix + "/v1/things"
	got := other.Get(ctx, unknown)
	status := t.ExpectStatus(got, suite.Unavailable)
	t.Expect(status.Details.RetryAfterSeconds).To(gomega.BeNumerically(">", 0), "%s", got)
	other.Served(ctx, "/api/v1/configmaps")
	t.Must(cp.Faults().Release("hook/"+hook), "release hook %s", hook)
	other.Until(ctx, unknown, http.StatusNotFound)
	t.Must(cp.WaitReady(ctx), "wait until the control plane is ready")
}

func unknownResourceIs404(ctx context.Context, t *suite.T) {
	for _, path := range []string{"/apis/apps/v1/no-such-things", "/api/v1/no-such-things", "/apis/apps/v0/deployments",
		"/api/v0"} {
		got := t.Get(ctx, path)
		status := t.ExpectStatus(got, suite.NotFound)
		t.Expect(status.Message).To(gomega.Equal("the server could not find the requested resource"), "%s", got)
		t.Expect(status.Details.Name).To(gomega.BeEmpty(), "%s", got)
	}
}

func missingObjectIs404(ctx context.Context, t *suite.T) {
	for path, want := range map[string]metav1.StatusDetails{
		"/api/v1/namespaces/default/configmaps/no-such-object": {Name: "no-such-object", Kind: "configmaps"},
		"/apis/apps/v1/namespaces/default/deployments/no-such-object": {Name: "no-such-object", Kind: "deployments",
			Group: "apps"},
	} {
		got := t.Get(ctx, path)
		status := t.ExpectStatus(got, suite.NotFound)
		t.Expect(status.Details).To(gomega.HaveValue(gomega.Equal(want)), "%s", got)
	}
}

func methodIsNotAllowed(ctx context.Context, t *suite.T) {
	for _, r := range []suite.Request{
		{Method: http.MethodPatch, Path: "/api/v1/namespaces"},
		{Method: http.MethodPut, Path: "/api/v1/namespaces/default/configmaps"},
		{Method: http.MethodPost, Path: "/version"},
	} {
		t.ExpectStatus(t.Ask(ctx, r), suite.MethodNotAllowed)
	}
}

func apiServices(t *suite.T) dynamic.ResourceInterface {
	return t.Dynamic.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1",
		Resource: "apiservices"})
}

// availability returns the status and reason of an APIService's Available condition.
func availability(service *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Available" {
			return fmt.Sprint(c["status"], " ", c["reason"])
		}
	}
	return "unknown"
}

// automanaged is the label of APIServices that the server registers by itself.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

func localAPIServicesAreAvailable(ctx context.Context, t *suite.T) {
	list := suite.List(ctx, t, apiServices(t).List, metav1.ListOptions{LabelSelector: automanaged + "=onstart"})
	var found []string
	for _, service := range list.Items {
		t.Expect(suite.Value(&service, "spec", "service")).To(gomega.BeNil(), service.GetName())
		registered(ctx, t, service.GetName())
		found = append(found, service.GetName())
	}
	t.Expect(found).To(gomega.ContainElements("v1.", "v1.apps", "v1.apiextensions.k8s.io",
		"v1.rbac.authorization.k8s.io", "v1.coordination.k8s.io"))
}

// registered waits until an APIService exists and is available, and returns it.
func registered(ctx context.Context, t *suite.T, name string) *unstructured.Unstructured {
	t.Eventually(ctx, apiServices(t).Get).WithArguments(name, metav1.GetOptions{}).
		Should(gomega.WithTransform(availability, gomega.Equal("True Local")), "APIService %s", name)
	service, err := apiServices(t).Get(ctx, name, metav1.GetOptions{})
	t.Must(err, "get APIService %s", name)
	return service
}

func customGroupHasAnAPIService(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	name := "v1." + w.Resource.Group
	service := registered(ctx, t, name)
	t.Expect(service.GetLabels()).To(gomega.HaveKeyWithValue(automanaged, "true"))
	t.Expect(suite.Value(service, "spec", "service")).To(gomega.BeNil())
	w.RemoveCRD(ctx)
	t.Eventually(ctx, func() error { return suite.ErrorOf(apiServices(t).Get(ctx, name, metav1.GetOptions{})) }).
		Should(suite.BeStatus(suite.NotFound), "APIService %s outlives its CRD", name)
}

func deletedAPIServiceComesBack(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	name := "v1." + w.Resource.Group
	before := registered(ctx, t, name).GetUID()
	t.Must(apiServices(t).Delete(ctx, name, metav1.DeleteOptions{}), "delete APIService %s", name)
	t.Eventually(ctx, apiServices(t).Get).WithArguments(name, metav1.GetOptions{}).
		ShouldNot(gomega.HaveField("GetUID()", before), "APIService %s", name)
	registered(ctx, t, name)
	t.Served(ctx, w.Path)
}

func indexListsTheChain(ctx context.Context, t *suite.T) {
	index := suite.GetJSON[metav1.RootPaths](ctx, t, "/")
	t.Expect(index.Paths).To(gomega.ContainElements("/api", "/apis", "/api/v1", "/apis/apps/v1",
		"/apis/apiextensions.k8s.io/v1",
		"/apis/apiregistration.k8s.io/v1", "/healthz", "/livez", "/readyz", "/metrics", "/openapi/v2", "/openapi/v3",
		"/version"))
	t.Expect(index.Paths).To(suite.BeSorted())
}
