package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var discoveryCases = []Case{
	{ID: "S18/core-versions-are-listed", Test: coreVersionsAreListed,
		Promise: "/api lists v1, and the server's address for each client network."},
	{ID: "S18/groups-prefer-a-version", Test: groupsPreferAVersion,
		Promise: "/apis lists each group once, with a preferred version that is one of its versions, and /apis/GROUP says the same."},
	{ID: "S18/resources-are-described", Test: resourcesAreDescribed,
		Promise: "Each built-in group version lists its resources with kind, scope, singular name and verbs, and no subresource without its resource."},
	{ID: "S18/short-names-and-categories", Test: shortNamesAndCategories,
		Promise: "Built-in resources carry the short names and categories that kubectl users type."},
	{ID: "S18/aggregated-discovery-agrees", Test: aggregatedDiscoveryAgrees,
		Promise: "Aggregated discovery, asked for by its media type, describes the same built-in resources as the documents of each group version."},
	{ID: "S18/aggregated-discovery-is-cacheable", Test: aggregatedDiscoveryIsCacheable,
		Promise: "Aggregated discovery has an ETag; a request that sends it back is answered 304 without a body."},
	{ID: "S18/custom-resource-comes-and-goes", Test: customResourceComesAndGoes,
		Promise: "A CRD's resource appears in both forms of discovery, as the CRD describes it, and disappears with the CRD."},
	{ID: "S18/preferred-version-of-a-custom-group", Test: preferredVersionOfACustomGroup,
		Promise: "A custom group prefers its most stable version, whatever the order in the CRD, and leaves out versions that are not served."},
	{ID: "S12/unknown-media-type-is-406", Test: unknownMediaTypeIs406,
		Promise: "A client that accepts only what the server can't write is answered 406 with a Status."},
}

// builtIn are group versions that every cluster of the release serves.
var builtIn = []string{
	"v1", "apps/v1", "batch/v1", "autoscaling/v2", "policy/v1", "networking.k8s.io/v1", "storage.k8s.io/v1",
	"rbac.authorization.k8s.io/v1", "coordination.k8s.io/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1",
	"admissionregistration.k8s.io/v1", "scheduling.k8s.io/v1", "node.k8s.io/v1", "discovery.k8s.io/v1",
	"authentication.k8s.io/v1", "authorization.k8s.io/v1", "certificates.k8s.io/v1", "events.k8s.io/v1",
	"flowcontrol.apiserver.k8s.io/v1",
}

// groupPath is the path of a group version's discovery document.
func groupPath(groupVersion string) string {
	if groupVersion == "v1" {
		return "/api/v1"
	}
	return "/apis/" + groupVersion
}

// k8s.io/apiserver/pkg/endpoints/discovery/legacy.go.
func coreVersionsAreListed(ctx context.Context, t *Target) {
	var versions metav1.APIVersions
	t.getJSON(ctx, "/api", &versions)
	t.Expect(versions.Kind).To(gomega.Equal("APIVersions"))
	t.Expect(versions.Versions).To(gomega.Equal([]string{"v1"}))
	t.Expect(versions.ServerAddressByClientCIDRs).To(gomega.HaveEach(gomega.HaveField("ServerAddress", gomega.Not(gomega.BeEmpty()))))
}

// k8s.io/kube-aggregator/pkg/apiserver/handler_apis.go.
func groupsPreferAVersion(ctx context.Context, t *Target) {
	var groups metav1.APIGroupList
	t.getJSON(ctx, "/apis", &groups)
	listed := map[string]metav1.APIGroup{}
	for _, group := range groups.Groups {
		t.Expect(listed).NotTo(gomega.HaveKey(group.Name), "group %s is listed twice", group.Name)
		t.Expect(group.Versions).To(gomega.ContainElement(group.PreferredVersion), "group %s", group.Name)
		listed[group.Name] = group
	}
	for _, groupVersion := range builtIn[1:] {
		name, version, _ := strings.Cut(groupVersion, "/")
		t.Expect(listed).To(gomega.HaveKey(name))
		t.Expect(listed[name].Versions).To(gomega.ContainElement(metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: version}))
		var group metav1.APIGroup
		t.getJSON(ctx, "/apis/"+name, &group)
		group.TypeMeta = metav1.TypeMeta{} // only the group's own document has it
		t.Expect(group).To(gomega.Equal(listed[name]))
	}
}

func (t *Target) resources(ctx context.Context, groupVersion string) metav1.APIResourceList {
	var list metav1.APIResourceList
	t.getJSON(ctx, groupPath(groupVersion), &list)
	return list
}

// k8s.io/apiserver/pkg/endpoints/discovery/version.go.
func resourcesAreDescribed(ctx context.Context, t *Target) {
	for _, groupVersion := range builtIn {
		list := t.resources(ctx, groupVersion)
		t.Expect(list.Kind).To(gomega.Equal("APIResourceList"))
		t.Expect(list.GroupVersion).To(gomega.Equal(groupVersion))
		t.Expect(list.APIResources).NotTo(gomega.BeEmpty(), groupVersion)
		seen := map[string]bool{}
		for _, resource := range list.APIResources {
			t.Expect(seen).NotTo(gomega.HaveKey(resource.Name), "%s: %s is listed twice", groupVersion, resource.Name)
			seen[resource.Name] = true
			t.Expect(resource.Kind).NotTo(gomega.BeEmpty(), "%s %s", groupVersion, resource.Name)
			t.Expect(resource.Verbs).NotTo(gomega.BeEmpty(), "%s %s", groupVersion, resource.Name)
			if !strings.Contains(resource.Name, "/") {
				t.Expect(resource.SingularName).NotTo(gomega.BeEmpty(), "%s %s", groupVersion, resource.Name)
			}
		}
		for name := range seen {
			parent, _, _ := strings.Cut(name, "/")
			t.Expect(seen).To(gomega.HaveKey(parent), "%s: subresource %s", groupVersion, name)
		}
	}
}

// k8s.io/kubernetes/pkg/registry: ShortNames and Categories of each REST.
func shortNamesAndCategories(ctx context.Context, t *Target) {
	for _, want := range []struct {
		groupVersion, resource, kind string
		shortNames, categories       []string
		namespaced                   bool
	}{
		{"v1", "configmaps", "ConfigMap", []string{"cm"}, nil, true},
		{"v1", "namespaces", "Namespace", []string{"ns"}, nil, false},
		{"v1", "pods", "Pod", []string{"po"}, []string{"all"}, true},
		{"v1", "services", "Service", []string{"svc"}, []string{"all"}, true},
		{"apps/v1", "deployments", "Deployment", []string{"deploy"}, []string{"all"}, true},
		{"batch/v1", "cronjobs", "CronJob", []string{"cj"}, []string{"all"}, true},
		{"apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", []string{"crd", "crds"}, []string{"api-extensions"}, false},
	} {
		found := resourceNamed(t.resources(ctx, want.groupVersion), want.resource)
		t.Expect(found.Kind).To(gomega.Equal(want.kind))
		t.Expect(found.Namespaced).To(gomega.Equal(want.namespaced), want.resource)
		t.Expect(found.ShortNames).To(gomega.Equal(want.shortNames), want.resource)
		t.Expect(found.Categories).To(gomega.Equal(want.categories), want.resource)
	}
}

// resourceNamed returns a resource of a list by name, an empty one if there is none.
func resourceNamed(list metav1.APIResourceList, name string) metav1.APIResource {
	at := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	if at < 0 {
		return metav1.APIResource{}
	}
	return list.APIResources[at]
}

// aggregatedType is the media type of aggregated discovery.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// aggregated fetches aggregated discovery and returns it by group version.
func (t *Target) aggregated(ctx context.Context, path string) map[string]apidiscoveryv2.APIVersionDiscovery {
	got := t.ask(ctx, request{path: path, accept: aggregatedType})
	var list apidiscoveryv2.APIGroupDiscoveryList
	t.json(got, &list)
	t.Expect(list.Kind).To(gomega.Equal("APIGroupDiscoveryList"), "%s", got)
	t.Expect(got.header.Get("Content-Type")).To(gomega.Equal(aggregatedType))
	t.Expect(got.header.Get("Vary")).To(gomega.ContainSubstring("Accept"), "a cache must know")
	versions := map[string]apidiscoveryv2.APIVersionDiscovery{}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			versions[strings.TrimPrefix(group.Name+"/"+version.Version, "/")] = version
		}
	}
	return versions
}

// k8s.io/apiserver/pkg/endpoints/discovery/aggregated.
func aggregatedDiscoveryAgrees(ctx context.Context, t *Target) {
	core, groups := t.aggregated(ctx, "/api"), t.aggregated(ctx, "/apis")
	for _, groupVersion := range builtIn {
		version, ok := groups[groupVersion]
		if groupVersion == "v1" {
			version, ok = core[groupVersion]
		}
		t.Expect(ok).To(gomega.BeTrue(), "%s is not in aggregated discovery", groupVersion)
		t.Expect(version.Freshness).To(gomega.Equal(apidiscoveryv2.DiscoveryFreshnessCurrent), groupVersion)
		var want, found []string
		for _, resource := range t.resources(ctx, groupVersion).APIResources {
			want = append(want, fmt.Sprint(resource.Name, " ", resource.Kind, resource.Verbs, resource.ShortNames, resource.Categories))
		}
		for _, resource := range version.Resources {
			if len(resource.Verbs) > 0 {
				found = append(found, fmt.Sprint(resource.Resource, " ", resource.ResponseKind.Kind, resource.Verbs, resource.ShortNames, resource.Categories))
			}
			for _, sub := range resource.Subresources {
				found = append(found, fmt.Sprint(resource.Resource, "/", sub.Subresource, " ", sub.ResponseKind.Kind, sub.Verbs, []string{}, []string{}))
			}
		}
		t.Expect(found).To(gomega.ConsistOf(want), groupVersion)
	}
}

// k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go.
func aggregatedDiscoveryIsCacheable(ctx context.Context, t *Target) {
	// Other users' CRDs may change the document between two requests.
	t.Eventually(ctx, func() string {
		first := t.ask(ctx, request{path: "/apis", accept: aggregatedType})
		etag := first.header.Get("ETag")
		t.Expect(etag).To(gomega.MatchRegexp(`^".+"$`))
		again := t.ask(ctx, request{path: "/apis", accept: aggregatedType, ifNoneMatch: etag})
		if again.code == http.StatusNotModified {
			t.Expect(again.body).To(gomega.BeEmpty())
			t.Expect(again.header.Get("ETag")).To(gomega.Equal(etag))
		}
		return http.StatusText(again.code)
	}).Should(gomega.Equal("Not Modified"))
	other := t.ask(ctx, request{path: "/apis", accept: aggregatedType, ifNoneMatch: `"another"`})
	t.Expect(other.code).To(gomega.Equal(http.StatusOK), "%s", other)
}

// k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go.
func customResourceComesAndGoes(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	groupVersion := w.resource.GroupVersion().String()
	t.served(ctx, "/apis/"+groupVersion)
	found := resourceNamed(t.resources(ctx, groupVersion), "widgets")
	t.Expect(found.Kind).To(gomega.Equal("Widget"))
	t.Expect(found.SingularName).To(gomega.Equal("widget"))
	t.Expect(found.Namespaced).To(gomega.BeFalse())
	t.Expect(found.ShortNames).To(gomega.Equal([]string{"wdg"}))
	t.Expect(found.Categories).To(gomega.Equal([]string{"all"}))
	t.Expect(found.Verbs).To(gomega.ConsistOf("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"))
	t.Eventually(ctx, t.aggregated).WithArguments("/apis").Should(gomega.HaveKey(groupVersion))
	t.Expect(t.aggregated(ctx, "/apis")[groupVersion].Resources).To(gomega.ConsistOf(
		gomega.And(gomega.HaveField("Resource", "widgets"), gomega.HaveField("Scope", apidiscoveryv2.ScopeCluster))))
	w.removeCRD(ctx)
	t.Eventually(ctx, t.aggregated).WithArguments("/apis").ShouldNot(gomega.HaveKey(groupVersion))
	t.Eventually(ctx, func() int { return t.get(ctx, "/apis/"+groupVersion).code }).Should(gomega.Equal(http.StatusNotFound))
}

// k8s.io/apimachinery/pkg/version/helpers.go, CompareKubeAwareVersionStrings.
func preferredVersionOfACustomGroup(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD(func(definition *crd) {
		hidden := widgetVersion("v3", false)
		hidden.Served = false
		definition.Spec.Versions = []crdVersion{widgetVersion("v1beta1", true), widgetVersion("v1", false), widgetVersion("v2alpha1", false), hidden}
	}))
	path := "/apis/" + w.resource.Group
	var group metav1.APIGroup
	t.Eventually(ctx, func() int {
		got := t.get(ctx, path)
		group = metav1.APIGroup{}
		if got.code == http.StatusOK {
			t.json(got, &group)
		}
		return len(group.Versions)
	}).Should(gomega.Equal(3), path)
	t.Expect(group.PreferredVersion.Version).To(gomega.Equal("v1"))
	t.Expect(group.Versions).To(gomega.HaveExactElements(
		gomega.HaveField("Version", "v1"), gomega.HaveField("Version", "v1beta1"), gomega.HaveField("Version", "v2alpha1")))
}

// k8s.io/apiserver/pkg/endpoints/handlers/negotiation.
func unknownMediaTypeIs406(ctx context.Context, t *Target) {
	for _, path := range []string{"/apis", "/api/v1/namespaces"} {
		got := t.ask(ctx, request{path: path, accept: "application/x-no-such-type"})
		t.expectStatus(got, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable)
	}
}
