package release

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var discoveryCases = suite.Launching([]suite.Case{
	{ID: "S18/resources-are-those-of-the-release", Test: resourcesAreThoseOfTheRelease,
		Source: "k8s.io/kubernetes/api/discovery/apis__apps__v1.json; " +
			"k8s.io/kubernetes/pkg/controlplane/instance.go, GenericStorageProviders",
		Promise: "A server that is told to serve all APIs serves each resource and subresource of its release, with " +
			"kind, scope, verbs, short names and categories, but for those behind a gate that is off."},
	{ID: "S3/stable-versions-are-served-by-default", Test: stableVersionsAreServedByDefault,
		Source: "KEP-3136; k8s.io/kubernetes/pkg/controlplane/instance.go, DefaultAPIResourceConfigSource",
		Promise: "Without --runtime-config a server serves every stable version of its release, and no alpha or beta " +
			"version."},
})

//go:embed kept/resources.txt
var keptResources string

// gated is what is behind gates that are off by default, GenericWorkload and EvictionRequestAPI, by
// its group version.
var gated = regexp.MustCompile(`^(apis/)?(lifecycle\.k8s\.io|scheduling\.k8s\.io/v1(alpha3|beta1))`)

// Resources describes each resource and subresource of a group version in a line of its own.
func Resources(list metav1.APIResourceList) []string {
	var all []string
	for _, r := range list.APIResources {
		kind := strings.TrimSpace(strings.TrimPrefix(r.Group+"/"+r.Version, "/") + " " + r.Kind)
		all = append(all, fmt.Sprintf("%s %s: %s namespaced=%t singular=%s short=%v in=%v stored=%s %v",
			list.GroupVersion, r.Name, kind,
			r.Namespaced, r.SingularName, r.ShortNames, r.Categories, r.StorageVersionHash, r.Verbs))
	}
	return all
}

// served describes all that a server serves by itself, without custom resources.
func served(ctx context.Context, t *suite.T) []string {
	groups := suite.GetJSON[metav1.APIGroupList](ctx, t, "/apis")
	paths := []string{"/api/v1"}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if !strings.HasSuffix(group.Name, suite.GroupSuffix) {
				paths = append(paths, "/apis/"+version.GroupVersion)
			}
		}
	}
	var all []string
	for _, path := range paths {
		list := suite.GetJSON[metav1.APIResourceList](ctx, t, path)
		all = append(all, Resources(list)...)
	}
	return all
}

// withoutGated leaves out the resources behind gates.
func withoutGated(described []string) []string {
	return slices.DeleteFunc(slices.Clone(described), func(line string) bool {
		return gated.MatchString(line)
	})
}

func resourcesAreThoseOfTheRelease(ctx context.Context, beside *suite.T) {
	t := everything(ctx, beside)
	kept := withoutGated(lines(keptResources))
	// The aggregator learns of group versions in the background.
	t.Eventually(ctx, func() []string { return differences(kept, withoutGated(served(ctx, t))) }).WithPolling(seldom).
		Should(gomega.BeEmpty(), "resources")
}

func stableVersionsAreServedByDefault(ctx context.Context, beside *suite.T) {
	t := plain(ctx, beside)
	stable := slices.DeleteFunc(withoutGated(lines(keptResources)), func(line string) bool {
		groupVersion, _, _ := strings.Cut(line, " ")
		return strings.Contains(groupVersion, "alpha") || strings.Contains(groupVersion, "beta")
	})
	t.Eventually(ctx, func() []string { return differences(stable, withoutGated(served(ctx, t))) }).WithPolling(seldom).
		Should(gomega.BeEmpty(), "resources")
}
