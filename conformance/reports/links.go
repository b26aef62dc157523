package reports

import (
	"path"
	"regexp"
	"strings"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/envtest/linked"
)

// sourceLink is a part of a case's source, and where it can be read; the address is empty if
// that is not known.
type sourceLink struct{ Text, URL string }

// upstreamFile matches a file or folder of upstream, such as k8s.io/apiserver/pkg/server/hooks.go.
var upstreamFile = regexp.MustCompile(`^((?:sigs\.)?k8s\.io/[\w.-]+)((?:/[\w.-]*\w)*)`)

// apart has the repositories of upstream's modules that are not in kubernetes/kubernetes.
var apart = map[string]string{
	"k8s.io/kube-openapi":                 "kubernetes/kube-openapi",
	"k8s.io/utils":                        "kubernetes/utils",
	"sigs.k8s.io/structured-merge-diff":   "kubernetes-sigs/structured-merge-diff",
	"sigs.k8s.io/apiserver-network-proxy": "kubernetes-sigs/apiserver-network-proxy",
}

// sourceLinks splits a case's source at its semicolons.
func sourceLinks(source string) (links []sourceLink) {
	for part := range strings.SplitSeq(source, ";") {
		part = strings.TrimSpace(part)
		links = append(links, sourceLink{part, address(part)})
	}
	return links
}

func address(source string) string {
	const github = "https://github.com/"
	if kep := engine.KEPNumber.FindStringSubmatch(source); kep != nil {
		return github + "kubernetes/enhancements/issues/" + kep[1]
	}
	if url, _, _ := strings.Cut(source, " "); strings.HasPrefix(url, "https://") {
		return strings.TrimRight(url, ",:")
	}
	file := upstreamFile.FindStringSubmatch(source)
	if file == nil {
		return ""
	}
	kind := "tree"
	if path.Ext(file[2]) != "" {
		kind = "blob"
	}
	module, below := file[1], file[2]
	if repository := apart[module]; repository != "" {
		return github + repository + "/" + kind + "/master" + versionless(below)
	}
	repository := github + "kubernetes/kubernetes/" + kind + "/" + linked.Release()
	if module == "k8s.io/kubernetes" {
		return repository + below
	}
	return repository + "/staging/src/" + module + below
}

var majorVersion = regexp.MustCompile(`^/v\d+`)

// versionless drops a leading major version such as /v6, which the path of the module has, but
// no folder of its repository.
func versionless(below string) string { return majorVersion.ReplaceAllString(below, "") }
