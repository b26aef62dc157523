// Package discovery has the cases about discovery and OpenAPI documents: that all forms of them
// say the same, are cacheable, and follow definitions that come and go.
package discovery

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

// Cases are the cases of this area.
var Cases = slices.Concat(discoveryCases, followingCases, openAPICases)

var discoveryCases = []suite.Case{
	{ID: "S18/core-versions-are-listed", Level: suite.Core, Test: coreVersionsAreListed,
		Source:  "k8s.io/apiserver/pkg/endpoints/discovery/legacy.go",
		Promise: "/api lists v1, and the server's address for each client network."},
	{ID: "S18/groups-prefer-a-version", Level: suite.Core, Test: groupsPreferAVersion,
		Source: "k8s.io/kube-aggregator/pkg/apiserver/handler_apis.go",
		Promise: "/apis lists each group once, with a preferred version that is one of its versions, and /apis/GROUP " +
			"says the same."},
	{ID: "S18/resources-are-described", Level: suite.Core, Test: resourcesAreDescribed,
		Source: "k8s.io/apiserver/pkg/endpoints/discovery/version.go",
		Promise: "Each built-in group version lists its resources with kind, scope, singular name and verbs, and no " +
			"subresource without its resource."},
	{ID: "S18/short-names-and-categories", Level: suite.Core, Test: shortNamesAndCategories,
		Source:  "k8s.io/kubernetes/pkg/registry: ShortNames and Categories of each REST",
		Promise: "Built-in resources carry the short names and categories that kubectl users type."},
	{ID: "S18/aggregated-discovery-agrees", Level: suite.Core, Test: aggregatedDiscoveryAgrees,
		Source: "k8s.io/apiserver/pkg/endpoints/discovery/aggregated",
		Promise: "Aggregated discovery, asked for by its media type, describes the same built-in resources as the " +
			"documents of each group version."},
	{ID: "S18/aggregated-discovery-is-cacheable", Level: suite.Core, Test: aggregatedDiscoveryIsCacheable,
		Source:  "k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go",
		Promise: "Aggregated discovery has an ETag; a request that sends it back is answered 304 without a body."},
	{ID: "S18/custom-resource-comes-and-goes", Level: suite.Core, Test: customResourceComesAndGoes,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go",
		Promise: "A CRD's resource appears in both forms of discovery, as the CRD describes it, and disappears with " +
			"the CRD."},
	{ID: "S18/preferred-version-of-a-custom-group", Level: suite.Core, Test: preferredVersionOfACustomGroup,
		Source: "k8s.io/apimachinery/pkg/version/helpers.go, CompareKubeAwareVersionStrings",
		Promise: "A custom group prefers its most stable version, whatever the order in the CRD, and leaves out " +
			"versions that are not served."},
	{ID: "S12/unknown-media-type-is-406", Level: suite.Core, Failure: true, Test: unknownMediaTypeIs406,
		Source:  "k8s.io/apiserver/pkg/endpoints/handlers/negotiation",
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

func coreVersionsAreListed(ctx context.Context, t *suite.T) {
	versions := suite.GetJSON[metav1.APIVersions](ctx, t, "/api")
	t.Expect(versions.Kind).To(gomega.Equal("APIVersions"))
	t.Expect(versions.Versions).To(gomega.Equal([]string{"v1"}))
	t.Expect(versions.ServerAddressByClientCIDRs).
		To(gomega.HaveEach(gomega.HaveField("ServerAddress", gomega.Not(gomega.BeEmpty()))))
}

func groupsPreferAVersion(ctx context.Context, t *suite.T) {
	groups := suite.GetJSON[metav1.APIGroupList](ctx, t, "/apis")
	listed := map[string]metav1.APIGroup{}
	for _, group := range groups.Groups {
		t.Expect(listed).NotTo(gomega.HaveKey(group.Name), "group %s is listed twice", group.Name)
		t.Expect(group.Versions).To(gomega.ContainElement(group.PreferredVersion), "group %s", group.Name)
		listed[group.Name] = group
	}
	for _, groupVersion := range builtIn[1:] {
		name, version, _ := strings.Cut(groupVersion, "/")
		t.Expect(listed).To(gomega.HaveKey(name))
		t.Expect(listed[name].Versions).
			To(gomega.ContainElement(metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: version}))
		group := suite.GetJSON[metav1.APIGroup](ctx, t, "/apis/"+name)
		group.TypeMeta = metav1.TypeMeta{} // only the group's own document has it
		t.Expect(group).To(gomega.Equal(listed[name]))
	}
}

func resources(ctx context.Context, t *suite.T, groupVersion string) metav1.APIResourceList {
	return suite.GetJSON[metav1.APIResourceList](ctx, t, groupPath(groupVersion))
}

func resourcesAreDescribed(ctx context.Context, t *suite.T) {
	for _, groupVersion := range builtIn {
		list := resources(ctx, t, groupVersion)
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

func shortNamesAndCategories(ctx context.Context, t *suite.T) {
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
		{"apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", []string{"crd", "crds"},
			[]string{"api-extensions"}, false},
	} {
		found := resourceNamed(resources(ctx, t, want.groupVersion), want.resource)
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

func aggregatedDiscoveryAgrees(ctx context.Context, t *suite.T) {
	core, groups := t.Discovery(ctx, "/api"), t.Discovery(ctx, "/apis")
	for _, groupVersion := range builtIn {
		version, ok := groups[groupVersion]
		if groupVersion == "v1" {
			version, ok = core[groupVersion]
		}
		t.Expect(ok).To(gomega.BeTrue(), "%s is not in aggregated discovery", groupVersion)
		t.Expect(version.Freshness).To(gomega.Equal(apidiscoveryv2.DiscoveryFreshnessCurrent), groupVersion)
		var want, found []string
		for _, resource := range resources(ctx, t, groupVersion).APIResources {
			want = append(want, fmt.Sprint(resource.Name, " ", resource.Kind, resource.Verbs, resource.ShortNames,
				resource.Categories))
		}
		for _, resource := range version.Resources {
			if len(resource.Verbs) > 0 {
				found = append(found, fmt.Sprint(resource.Resource, " ", resource.ResponseKind.Kind, resource.Verbs,
					resource.ShortNames, resource.Categories))
			}
			for _, sub := range resource.Subresources {
				found = append(found, fmt.Sprint(resource.Resource, "/", sub.Subresource, " ", sub.ResponseKind.Kind,
					sub.Verbs, []string{}, []string{}))
			}
		}
		t.Expect(found).To(gomega.ConsistOf(want), groupVersion)
	}
}

func aggregatedDiscoveryIsCacheable(ctx context.Context, t *suite.T) {
	// Other users' CRDs may change the document between two requests.
	t.Eventually(ctx, func() string {
		first := t.Ask(ctx, suite.Request{Path: "/apis", Accept: suite.DiscoveryType})
		etag := first.Header.Get("ETag")
		t.Expect(etag).To(gomega.MatchRegexp(`^".+"$`))
		again := t.Ask(ctx, suite.Request{Path: "/apis", Accept: suite.DiscoveryType, IfNoneMatch: etag})
		if again.Code == http.StatusNotModified {
			t.Expect(again.Body).To(gomega.BeEmpty())
			t.Expect(again.Header.Get("ETag")).To(gomega.Equal(etag))
		}
		return http.StatusText(again.Code)
	}).Should(gomega.Equal("Not Modified"))
	t.AnsweredTo(ctx, suite.Request{Path: "/apis", Accept: suite.DiscoveryType, IfNoneMatch: `"another"`},
		http.StatusOK)
}

func customResourceComesAndGoes(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	groupVersion := w.Resource.GroupVersion().String()
	t.Served(ctx, "/apis/"+groupVersion)
	found := resourceNamed(resources(ctx, t, groupVersion), "widgets")
	t.Expect(found.Kind).To(gomega.Equal("Widget"))
	t.Expect(found.SingularName).To(gomega.Equal("widget"))
	t.Expect(found.Namespaced).To(gomega.BeFalse())
	t.Expect(found.ShortNames).To(gomega.Equal([]string{"wdg"}))
	t.Expect(found.Categories).To(gomega.Equal([]string{"all"}))
	t.Expect(found.Verbs).To(gomega.ConsistOf("delete", "deletecollection", "get", "list", "patch", "create", "update",
		"watch"))
	t.Eventually(ctx, t.Discovery).WithArguments("/apis").
		Should(gomega.HaveKeyWithValue(groupVersion, gomega.HaveField("Resources",
			gomega.ConsistOf(gomega.And(gomega.HaveField("Resource", "widgets"),
				gomega.HaveField("Scope", apidiscoveryv2.ScopeCluster))))))
	w.RemoveCRD(ctx)
	t.Eventually(ctx, t.Discovery).WithArguments("/apis").ShouldNot(gomega.HaveKey(groupVersion))
	t.Until(ctx, "/apis/"+groupVersion, http.StatusNotFound)
}

func preferredVersionOfACustomGroup(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(func(definition *suite.CRD) {
		hidden := suite.WidgetVersion("v3", false)
		hidden.Served = false
		definition.Spec.Versions = []suite.CRDVersion{suite.WidgetVersion("v1beta1", true),
			suite.WidgetVersion("v1", false), suite.WidgetVersion("v2alpha1", false), hidden}
	}))
	path := "/apis/" + w.Resource.Group
	var group metav1.APIGroup
	t.Eventually(ctx, func() int {
		got := t.Get(ctx, path)
		group = metav1.APIGroup{}
		if got.Code == http.StatusOK {
			group = suite.JSON[metav1.APIGroup](t, got)
		}
		return len(group.Versions)
	}).Should(gomega.Equal(3), path)
	t.Expect(group.PreferredVersion.Version).To(gomega.Equal("v1"))
	t.Expect(group.Versions).To(gomega.HaveExactElements(
		gomega.HaveField("Version", "v1"), gomega.HaveField("Version", "v1beta1"), gomega.HaveField("Version",
			"v2alpha1")))
}

func unknownMediaTypeIs406(ctx context.Context, t *suite.T) {
	for _, path := range []string{"/apis", "/api/v1/namespaces"} {
		t.ExpectStatus(t.Ask(ctx, suite.Request{Path: path, Accept: "application/x-no-such-type"}), suite.NotAcceptable)
	}
}
