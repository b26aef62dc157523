package conformance

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"snowglobe.test/envtest"
)

var delegationCases = []Case{
	{ID: "S12/built-in-path-is-answered", Test: builtInPathIsAnswered,
		Promise: "The paths of the core group and of a named group are answered by the server that has them."},
	{ID: "S10/custom-resource-path-is-answered", Test: customResourcePathIsAnswered,
		Promise: "The path of a custom resource is answered, although the servers in front of apiextensions do not know it."},
	{ID: "S11/unknown-path-is-404", Test: unknownPathIs404,
		Promise: "A path that no server of the chain knows, in a group or not, is answered 404 by the end of the chain: plain text, no Status."},
	{ID: "S11/unknown-path-is-503-before-CRDs-are-known", Needs: Needs{Launch: true}, Test: unknownPathIs503BeforeCRDsAreKnown,
		Promise: "Until the CRD informer has synced, an unknown path is answered 503 with a time to retry after, never 404, while built-in paths work."},
	{ID: "S12/unknown-resource-is-404", Test: unknownResourceIs404,
		Promise: "An unknown resource or version of a known group is answered 404 with a Status that names no object."},
	{ID: "S12/missing-object-is-404", Test: missingObjectIs404,
		Promise: "A missing object is answered 404 with a Status that names the object, its resource and its group."},
	{ID: "S12/method-is-not-allowed", Test: methodIsNotAllowed,
		Promise: "A method that a known path does not support is answered 405 with a Status."},
	{ID: "S14/local-apiservices-are-available", Test: localAPIServicesAreAvailable,
		Promise: "Every built-in group version has an APIService without a service, which is Available because it is Local."},
	{ID: "S14/custom-group-has-an-apiservice", Test: customGroupHasAnAPIService,
		Promise: "The group version of a CRD gets a Local, managed APIService by itself, and loses it with the CRD."},
	{ID: "S14/deleted-apiservice-comes-back", Test: deletedAPIServiceComesBack,
		Promise: "If the managed APIService of a CRD's group version is deleted, it is registered again."},
	{ID: "S1/index-lists-the-whole-chain", Test: indexListsTheChain,
		Promise: "/ lists paths of every server of the chain, sorted."},
}

// typeOf returns the apiVersion and kind of an answer.
func (t *Target) typeOf(got answer) string {
	var meta metav1.TypeMeta
	t.json(got, &meta)
	return meta.APIVersion + " " + meta.Kind
}

// k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go: a local APIService
// delegates to the kube-apiserver.
func builtInPathIsAnswered(ctx context.Context, t *Target) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/default":                                      "v1 Namespace",
		"/api/v1/configmaps?limit=1":                                      "v1 ConfigMapList",
		"/apis/apps/v1/deployments?limit=1":                               "apps/v1 DeploymentList",
		"/apis/apiregistration.k8s.io/v1/apiservices?limit=1":             "apiregistration.k8s.io/v1 APIServiceList",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=1": "apiextensions.k8s.io/v1 CustomResourceDefinitionList",
	} {
		t.Expect(t.typeOf(t.get(ctx, path))).To(gomega.Equal(want), path)
	}
}

// k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
func customResourcePathIsAnswered(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	w.make(ctx, "one")
	gv := w.resource.GroupVersion().String()
	t.Expect(t.typeOf(t.get(ctx, w.path))).To(gomega.Equal(gv + " WidgetList"))
	t.Expect(t.typeOf(t.get(ctx, w.path+"/one"))).To(gomega.Equal(gv + " Widget"))
	got := t.get(ctx, w.path+"/two")
	t.Expect(t.expectStatus(got, http.StatusNotFound, metav1.StatusReasonNotFound).Details.Name).To(gomega.Equal("two"), "%s", got)
}

// k8s.io/apiserver/pkg/util/notfoundhandler/not_found_handler.go.
func unknownPathIs404(ctx context.Context, t *Target) {
	group := t.Name + groupSuffix
	for _, path := range []string{
		"/" + t.Name,
		"/apis/" + group,
		"/apis/" + group + "/v1",
		"/apis/" + group + "/v1/things",
		"/apis/" + group + "/v1/namespaces/default/things/one",
	} {
		got := t.answered(ctx, path, http.StatusNotFound)
		t.Expect(string(got.body)).To(gomega.Equal("404 page not found\n"), "%s", got)
	}
}

// k8s.io/kubernetes/cmd/kube-apiserver/app/server.go, CreateServerChain, and
// k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go, the hook
// crd-informer-synced: kubernetes#104748.
func unknownPathIs503BeforeCRDsAreKnown(ctx context.Context, t *Target) {
	const hook = "crd-informer-synced"
	cp, other := t.launch(ctx, envtest.HoldHook(hook))
	unknown := "/apis/" + t.Name + groupSuffix + "/v1/things"
	got := other.get(ctx, unknown)
	status := t.expectStatus(got, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	t.Expect(status.Details.RetryAfterSeconds).To(gomega.BeNumerically(">", 0), "%s", got)
	other.answered(ctx, "/api/v1/configmaps", http.StatusOK)
	t.must(cp.ReleaseHook(hook), "release hook %s", hook)
	t.Eventually(ctx, func() int { return other.get(ctx, unknown).code }).Should(gomega.Equal(http.StatusNotFound))
	t.must(cp.WaitReady(ctx), "wait until the control plane is ready")
}

// k8s.io/apiserver/pkg/server/handler.go and pkg/endpoints/installer.go: the
// group version is routed, the rest is not.
func unknownResourceIs404(ctx context.Context, t *Target) {
	for _, path := range []string{"/apis/apps/v1/no-such-things", "/api/v1/no-such-things", "/apis/apps/v0/deployments", "/api/v0"} {
		got := t.get(ctx, path)
		status := t.expectStatus(got, http.StatusNotFound, metav1.StatusReasonNotFound)
		t.Expect(status.Message).To(gomega.Equal("the server could not find the requested resource"), "%s", got)
		t.Expect(status.Details.Name).To(gomega.BeEmpty(), "%s", got)
	}
}

// k8s.io/apimachinery/pkg/api/errors/errors.go, NewNotFound.
func missingObjectIs404(ctx context.Context, t *Target) {
	for path, want := range map[string]metav1.StatusDetails{
		"/api/v1/namespaces/default/configmaps/no-such-object":        {Name: "no-such-object", Kind: "configmaps"},
		"/apis/apps/v1/namespaces/default/deployments/no-such-object": {Name: "no-such-object", Kind: "deployments", Group: "apps"},
	} {
		got := t.get(ctx, path)
		status := t.expectStatus(got, http.StatusNotFound, metav1.StatusReasonNotFound)
		t.Expect(status.Details).To(gomega.HaveValue(gomega.Equal(want)), "%s", got)
	}
}

// k8s.io/apiserver/pkg/server/handler.go, the error handler of the container.
func methodIsNotAllowed(ctx context.Context, t *Target) {
	for _, r := range []request{
		{method: http.MethodPatch, path: "/api/v1/namespaces"},
		{method: http.MethodPut, path: "/api/v1/namespaces/default/configmaps"},
		{method: http.MethodPost, path: "/version"},
	} {
		t.expectStatus(t.ask(ctx, r), http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
	}
}

func (t *Target) apiServices() dynamic.ResourceInterface {
	return t.dynamic.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
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

// k8s.io/kube-aggregator/pkg/controllers/status/local.
func localAPIServicesAreAvailable(ctx context.Context, t *Target) {
	list, err := t.apiServices().List(ctx, metav1.ListOptions{LabelSelector: automanaged + "=onstart"})
	t.must(err, "list APIServices")
	var found []string
	for _, service := range list.Items {
		t.Expect(value(&service, "spec", "service")).To(gomega.BeNil(), service.GetName())
		t.Expect(availability(&service)).To(gomega.Equal("True Local"), service.GetName())
		found = append(found, service.GetName())
	}
	t.Expect(found).To(gomega.ContainElements("v1.", "v1.apps", "v1.apiextensions.k8s.io", "v1.rbac.authorization.k8s.io", "v1.coordination.k8s.io"))
}

// registered waits until an APIService exists and is available, and returns it.
func (t *Target) registered(ctx context.Context, name string) *unstructured.Unstructured {
	t.Eventually(ctx, t.apiServices().Get).WithArguments(name, metav1.GetOptions{}).
		Should(gomega.WithTransform(availability, gomega.Equal("True Local")), "APIService %s", name)
	service, err := t.apiServices().Get(ctx, name, metav1.GetOptions{})
	t.must(err, "get APIService %s", name)
	return service
}

// k8s.io/kubernetes/pkg/controlplane/controller/crdregistration.
func customGroupHasAnAPIService(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	name := "v1." + w.resource.Group
	service := t.registered(ctx, name)
	t.Expect(service.GetLabels()).To(gomega.HaveKeyWithValue(automanaged, "true"))
	t.Expect(value(service, "spec", "service")).To(gomega.BeNil())
	w.removeCRD(ctx)
	t.Eventually(ctx, func() error {
		_, err := t.apiServices().Get(ctx, name, metav1.GetOptions{})
		return err
	}).Should(beStatus(http.StatusNotFound, metav1.StatusReasonNotFound), "APIService %s outlives its CRD", name)
}

// k8s.io/kube-aggregator/pkg/controllers/autoregister.
func deletedAPIServiceComesBack(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	name := "v1." + w.resource.Group
	before := t.registered(ctx, name).GetUID()
	t.must(t.apiServices().Delete(ctx, name, metav1.DeleteOptions{}), "delete APIService %s", name)
	t.Eventually(ctx, t.apiServices().Get).WithArguments(name, metav1.GetOptions{}).
		ShouldNot(gomega.HaveField("GetUID()", before), "APIService %s", name)
	t.registered(ctx, name)
	t.served(ctx, w.path)
}

// k8s.io/apiserver/pkg/server/routes/index.go over the delegation's ListedPaths.
func indexListsTheChain(ctx context.Context, t *Target) {
	var index metav1.RootPaths
	t.getJSON(ctx, "/", &index)
	t.Expect(index.Paths).To(gomega.ContainElements("/api", "/apis", "/api/v1", "/apis/apps/v1", "/apis/apiextensions.k8s.io/v1",
		"/apis/apiregistration.k8s.io/v1", "/healthz", "/livez", "/readyz", "/metrics", "/openapi/v2", "/openapi/v3", "/version"))
	t.Expect(index.Paths).To(beSorted())
}
