// Package linked tells which kube-apiserver this program has in it.
package linked

import (
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	baseversion "k8s.io/component-base/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

const kubernetesModule = "k8s.io/kubernetes"

// Release returns the release of the linked k8s.io/kubernetes, like "v1.37.1", from
// the build information or, as a test binary has none, the path of a linked source
// file. A vendored test binary has neither and reports the minor's first patch.
func Release() string { return release() }

var release = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == kubernetesModule {
				return dep.Version
			}
		}
	}
	function := runtime.FuncForPC(reflect.ValueOf(app.CreateServerChain).Pointer())
	file, _ := function.FileLine(function.Entry()) // and its line
	if _, version, ok := strings.Cut(file, kubernetesModule+"@"); ok {
		version, _, _ = strings.Cut(version, "/")
		return version
	}
	return "v" + baseversion.DefaultKubeBinaryVersion + ".0"
})
