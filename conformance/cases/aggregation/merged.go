package aggregation

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"snowglobe.test/conformance/suite"
)

var mergedCases = suite.Launching([]suite.Case{
	{ID: "S14/priorities-order-groups-and-versions", Level: suite.Core, Test: prioritiesOrder,
		Source: "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper/helpers.go, SortedByGroupAndVersion; " +
			"pkg/apiserver/handler_apis.go",
		Promise: "Of an aggregated group the version with the highest versionPriority is preferred, and groups are " +
			"listed by groupPriorityMinimum, highest first."},
	{ID: "S14/aggregated-group-is-in-discovery", Level: suite.Core, Test: aggregatedGroupIsInDiscovery,
		Source: "KEP-3352; k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go",
		Promise: "The resources of an aggregated server are in aggregated discovery as it describes them, those of " +
			"versions with an APIService alone."},
	{ID: "S14/openapi-is-merged", Level: suite.Core, Test: openAPIIsMerged,
		Source: "k8s.io/kube-aggregator/pkg/controllers/openapi; pkg/controllers/openapiv3",
		Promise: "The paths of an aggregated server are in /openapi/v2 and its group version is in /openapi/v3, and " +
			"both go with the APIService."},
	{ID: "S14/deleted-apiservice-ends-its-group", Level: suite.Core, Failure: true,
		Test:   deletedAPIServiceEndsItsGroup,
		Source: "k8s.io/kube-aggregator/pkg/apiserver/apiserver.go, RemoveAPIService",
		Promise: "Without its APIService an aggregated group is answered 404 and is not in discovery; other versions " +
			"of the group stay."},
})

func prioritiesOrder(ctx context.Context, beside *suite.T) {
	b, t := serve(ctx, beside)
	b.makeService(ctx)
	with := func(group, version int32) func(*apiregistrationv1.APIServiceSpec) {
		return func(spec *apiregistrationv1.APIServiceSpec) {
			spec.GroupPriorityMinimum, spec.VersionPriority = group, version
		}
	}
	b.register(ctx, "v1", with(17000, 20))
	b.register(ctx, "v2", with(20000, 10))
	t.Served(ctx, "/apis/"+b.Group)
	versions := func() []string {
		group := suite.GetJSON[metav1.APIGroup](ctx, t, "/apis/"+b.Group)
		found := []string{group.PreferredVersion.GroupVersion}
		for _, version := range group.Versions {
			found = append(found, version.Version)
		}
		return found
	}
	t.Eventually(ctx, versions).Should(gomega.Equal([]string{b.Group + "/v1", "v1", "v2"}))
	groups := suite.GetJSON[metav1.APIGroupList](ctx, t, "/apis")
	at := func(name string) int {
		return slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == name })
	}
	// The aggregator's own group comes first.
	t.Expect([]int{at("apiregistration.k8s.io"), at(b.Group)}).To(gomega.Equal([]int{0, 1}), "the places of %s and %s",
		groups.Groups[0].Name, b.Group)
}

// discovered returns what aggregated discovery says of a version: its freshness and resources.
func (b *backend) discovered(ctx context.Context, version string) []string {
	v, known := b.T.Discovery(ctx, "/apis")[b.Group+"/"+version]
	if !known {
		return nil
	}
	found := []string{string(v.Freshness)}
	for _, r := range v.Resources {
		found = append(found, r.Resource+" "+r.ResponseKind.Kind)
		found = append(found, r.ShortNames...)
	}
	return found
}

func aggregatedGroupIsInDiscovery(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	fresh := []string{"Current", "widgets Widget", "wdg"}
	t.Eventually(ctx, b.discovered).WithArguments("v1").Should(gomega.Equal(fresh))
	t.Expect(b.discovered(ctx, "v2")).To(gomega.BeEmpty(), "v2 has no APIService")
	list := suite.GetJSON[metav1.APIResourceList](ctx, t, "/apis/"+b.Group+"/v1")
	t.Expect(list.APIResources).To(gomega.ConsistOf(gomega.HaveField("Name", "widgets")))
}

func openAPIIsMerged(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	holds := func(document, text string) func() bool {
		return func() bool { return strings.Contains(string(t.Answered(ctx, document, http.StatusOK).Body), text) }
	}
	v2, v3 := holds("/openapi/v2", `"`+b.path("v1")+`"`), holds("/openapi/v3", `"apis/`+b.Group+`/v1"`)
	t.Eventually(ctx, v2).Should(gomega.BeTrue(), "%s is not in /openapi/v2", b.path("v1"))
	t.Eventually(ctx, v3).Should(gomega.BeTrue(), "%s/v1 is not in /openapi/v3", b.Group)
	t.Must(b.APIServices.Delete(ctx, b.name("v1"), metav1.DeleteOptions{}), "delete APIService %s", b.name("v1"))
	t.Eventually(ctx, v2).Should(gomega.BeFalse(), "%s stays in /openapi/v2", b.path("v1"))
	t.Eventually(ctx, v3).Should(gomega.BeFalse(), "%s/v1 stays in /openapi/v3", b.Group)
	t.Expect(holds("/openapi/v2", `"/apis/apps/v1/deployments"`)()).To(gomega.BeTrue(),
		"/openapi/v2 has lost the built-in paths")
}

func deletedAPIServiceEndsItsGroup(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	b.register(ctx, "v2")
	b.until(ctx, "v2", "True Passed")
	t.Served(ctx, b.path("v2"))
	t.Must(b.APIServices.Delete(ctx, b.name("v1"), metav1.DeleteOptions{}), "delete APIService %s", b.name("v1"))
	t.Until(ctx, b.path("v1"), http.StatusNotFound)
	t.Answered(ctx, b.path("v2"), http.StatusOK)
	t.Must(b.APIServices.Delete(ctx, b.name("v2"), metav1.DeleteOptions{}), "delete APIService %s", b.name("v2"))
	t.Until(ctx, b.path("v2"), http.StatusNotFound)
	t.Until(ctx, "/apis/"+b.Group, http.StatusNotFound)
	t.Eventually(ctx, b.discovered).WithArguments("v1").Should(gomega.BeEmpty())
}
