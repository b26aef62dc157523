package target

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/conformance/suite"
)

// Learn asks a cluster for its release and its feature gates. What the cluster does not tell stays
// unknown.
func Learn(ctx context.Context, cluster *suite.Cluster) {
	if parsed, err := version.ParseGeneric(cluster.Release); err == nil {
		cluster.Minor = minorOf(parsed)
	}
	client, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	get := client.Discovery().RESTClient().Get
	told, err := get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return
	}
	cluster.Reported, cluster.Minor = releaseIn(told, cluster.Minor)
	if metrics, err := get().AbsPath("/metrics").DoRaw(ctx); err == nil {
		cluster.Gates = gatesIn(metrics)
	}
}

// releaseIn reads /version: the release, and the minor one that is served, which is older if
// the server emulates it. What was given as minor wins.
func releaseIn(told []byte, given string) (release, minor string) {
	var info apiversion.Info
	if json.Unmarshal(told, &info) != nil {
		return "", given
	}
	parsed, err := version.ParseGeneric(info.Major + "." + strings.TrimRight(info.Minor, "+")) // vendors write "37+"
	if err != nil || given != "" {
		return info.GitVersion, given
	}
	return info.GitVersion, minorOf(parsed)
}

func minorOf(release *version.Version) string {
	return version.MajorMinor(release.Major(), release.Minor()).String()
}

// gateMetric matches the metric by which component-base says whether a feature gate is on.
var gateMetric = regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} ([01])$`)

// gatesIn reads the feature gates from the metrics of a server.
func gatesIn(metrics []byte) map[string]bool {
	gates := map[string]bool{}
	for _, found := range gateMetric.FindAllSubmatch(metrics, -1) {
		gates[string(found[1])] = bytes.Equal(found[2], []byte("1"))
	}
	return gates
}
