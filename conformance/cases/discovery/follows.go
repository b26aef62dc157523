package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var followingCases = []suite.Case{
	{ID: "S18/etag-follows-the-resources", Level: suite.Core, Test: etagFollowsTheResources,
		Source: "KEP-3352; k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go, calculateETag and " +
			"ServeHTTPWithETag",
		Promise: "When a CRD comes or goes the ETag of aggregated discovery is another one, and who asks with the " +
			"old one gets the new document, not 304."},
	{ID: "S18/stale-group-is-marked", Failure: true, Test: staleGroupIsMarked,
		Source: "KEP-3352; k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go, syncAPIService: an entry that " +
			"could not be fetched is stale",
		Promise: "A group whose aggregated server can't be reached is in aggregated discovery, marked as stale and " +
			"without resources, its path is 503, and all other groups stay current."},
	{ID: "S18/verbs-are-what-is-served", Level: suite.Core, Failure: true, Test: verbsAreWhatIsServed,
		Source: "k8s.io/apiserver/pkg/endpoints/installer.go, registerResourceHandlers: the verbs of an APIResource " +
			"are its routes",
		Promise: "Each built-in resource answers a list if discovery says that it has the verb, and 405 to the verbs " +
			"that it does not have."},
	{ID: "S18/storage-version-has-a-hash", Test: storageVersionHasAHash,
		Source: "k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go; " +
			"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go",
		Promise: "A stored resource carries the hash of the version in which it is stored, the same in each version " +
			"that serves it; one that is not stored has none."},
	{ID: "S18/form-of-discovery-is-negotiated", Failure: true, Test: formOfDiscoveryIsNegotiated,
		Source: "KEP-3352; k8s.io/apiserver/pkg/endpoints/discovery/aggregated/wrapper.go and negotiation.go",
		Promise: "A client that accepts aggregated discovery gets it, one that accepts only a newer form beside " +
			"plain JSON gets the plain document, and a form that there is not is 406 by itself."},
}

func etagFollowsTheResources(ctx context.Context, t *suite.T) {
	ask := func(tag string) suite.Answer {
		return t.Ask(ctx, suite.Request{Path: "/apis", Accept: suite.DiscoveryType, IfNoneMatch: tag})
	}
	before := ask("").Header.Get("ETag")
	t.Expect(before).NotTo(gomega.BeEmpty())
	w := t.Install(ctx, t.WidgetCRD())
	groupVersion := w.Resource.GroupVersion().String()
	t.Eventually(ctx, t.Discovery).WithArguments("/apis").Should(gomega.HaveKey(groupVersion))
	with := ask(before)
	t.Expect(with.Code).To(gomega.Equal(http.StatusOK), "asked with the ETag of before: %s", with)
	t.Expect(with.Header.Get("ETag")).NotTo(gomega.Equal(before))
	t.Expect(string(with.Body)).To(gomega.ContainSubstring(w.Resource.Group))
	w.RemoveCRD(ctx)
	t.Eventually(ctx, t.Discovery).WithArguments("/apis").ShouldNot(gomega.HaveKey(groupVersion))
	without := ask(with.Header.Get("ETag"))
	t.Expect(without.Code).To(gomega.Equal(http.StatusOK), "asked with the ETag of before: %s", without)
	t.Expect(without.Header.Get("ETag")).NotTo(gomega.Equal(with.Header.Get("ETag")))
}

func staleGroupIsMarked(ctx context.Context, t *suite.T) {
	group := t.Name + suite.GroupSuffix
	const services = "/apis/apiregistration.k8s.io/v1/apiservices"
	t.AnsweredTo(ctx, suite.Request{Method: http.MethodPost, Path: services, Body: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": "default", "name": t.Name}},
	}}, http.StatusCreated)
	remove := suite.Request{Method: http.MethodDelete, Path: services + "/v1." + group}
	t.Eventually(ctx, t.Discovery).WithArguments("/apis").Should(gomega.HaveKey(group + "/v1"))
	versions := t.Discovery(ctx, "/apis")
	t.Expect(versions[group+"/v1"].Freshness).To(gomega.Equal(apidiscoveryv2.DiscoveryFreshnessStale))
	t.Expect(versions[group+"/v1"].Resources).To(gomega.BeEmpty())
	t.Expect(versions["apps/v1"].Freshness).To(gomega.Equal(apidiscoveryv2.DiscoveryFreshnessCurrent))
	t.Until(ctx, "/apis/"+group+"/v1", http.StatusServiceUnavailable)
	t.AnsweredTo(ctx, remove, http.StatusOK)
	t.Eventually(ctx, t.Discovery).WithArguments("/apis").ShouldNot(gomega.HaveKey(group + "/v1"))
}

func verbsAreWhatIsServed(ctx context.Context, t *suite.T) {
	for _, groupVersion := range builtIn {
		for _, resource := range resources(ctx, t, groupVersion).APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			path := groupPath(groupVersion) + "/" + resource.Name
			if resource.Namespaced {
				path = groupPath(groupVersion) + "/namespaces/default/" + resource.Name
			}
			has := func(verb string) bool { return slices.Contains(resource.Verbs, verb) }
			listed := t.Get(ctx, path+"?limit=1")
			if has("list") {
				t.Expect(listed.Code).To(gomega.Equal(http.StatusOK), "verbs %v: %s", resource.Verbs, listed)
			} else {
				t.Expect(listed.Code).To(gomega.Equal(http.StatusMethodNotAllowed), "verbs %v: %s", resource.Verbs,
					listed)
			}
			for verb, method := range map[string]string{"create": http.MethodPost,
				"deletecollection": http.MethodDelete} {
				if !has(verb) {
					// A dry run, should a server not refuse.
					got := t.Ask(ctx, suite.Request{Method: method, Path: path + "?dryRun=All", Body: map[string]any{}})
					t.Expect(got.Code).To(gomega.Equal(http.StatusMethodNotAllowed), "verbs %v: %s", resource.Verbs,
						got)
				}
			}
		}
	}
}

// hashOf is the hash of the version in which a kind is stored.
func hashOf(version string) string {
	sum := sha256.Sum256([]byte(version))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

func storageVersionHasAHash(ctx context.Context, t *suite.T) {
	hash := func(groupVersion, resource string) string {
		return resourceNamed(resources(ctx, t, groupVersion), resource).StorageVersionHash
	}
	t.Expect(hash("apps/v1", "deployments")).To(gomega.Equal(hashOf("apps/v1/Deployment")))
	t.Expect(hash("v1", "configmaps")).To(gomega.Equal(hashOf("/v1/ConfigMap")))
	t.Expect(hash("v1", "events")).To(gomega.Equal(hash("events.k8s.io/v1", "events")), "one object in two groups")
	t.Expect(hash("authorization.k8s.io/v1", "subjectaccessreviews")).To(gomega.BeEmpty())
	t.Expect(hash("v1", "pods/status")).To(gomega.BeEmpty())

	w := t.Install(ctx, t.WidgetCRD(func(definition *suite.CRD) {
		definition.Spec.Versions = append(definition.Spec.Versions, suite.WidgetVersion("v2", false))
	}))
	for _, version := range []string{"v1", "v2"} {
		groupVersion := w.Resource.Group + "/" + version
		t.Served(ctx, "/apis/"+groupVersion)
		t.Expect(hash(groupVersion, "widgets")).To(gomega.Equal(hashOf(w.Resource.Group+"/v1/Widget")), "in %s",
			version)
	}
	definition := suite.Get(ctx, t, t.CRDs.Get, w.CRD.Name)
	definition.Spec.Versions[0].Storage, definition.Spec.Versions[1].Storage = false, true
	suite.Update(ctx, t, t.CRDs.Update, definition)
	t.Eventually(ctx, hash).WithArguments(w.Resource.Group+"/v1", "widgets").
		Should(gomega.Equal(hashOf(w.Resource.Group + "/v2/Widget")))
}

func formOfDiscoveryIsNegotiated(ctx context.Context, t *suite.T) {
	kind := func(accept string) string {
		got := t.Ask(ctx, suite.Request{Path: "/apis", Accept: accept})
		return suite.JSON[metav1.TypeMeta](t, got).Kind
	}
	const unknown = "application/json;g=apidiscovery.k8s.io;v=v99;as=APIGroupDiscoveryList"
	t.Expect(kind("application/json")).To(gomega.Equal("APIGroupList"))
	t.Expect(kind(suite.DiscoveryType + ",application/json")).To(gomega.Equal("APIGroupDiscoveryList"))
	t.Expect(kind("application/json,"+suite.DiscoveryType)).To(gomega.Equal("APIGroupDiscoveryList"),
		"it is accepted too")
	t.Expect(kind(unknown+",application/json")).To(gomega.Equal("APIGroupList"),
		"what an older server answers a newer client")
	t.ExpectStatus(t.Ask(ctx, suite.Request{Path: "/apis", Accept: unknown}), suite.NotAcceptable)
}
