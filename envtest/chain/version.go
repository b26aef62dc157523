package chain

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

const kubernetesModule = "k8s.io/kubernetes"

// Release returns the release of the linked k8s.io/kubernetes, like "v1.37.1", from
// the build information or, as a test binary has none, the path of a linked source
// file. A vendored test binary has neither and reports the minor's first patch.
var Release = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == kubernetesModule {
				return dep.Version
			}
		}
	}
	function := runtime.FuncForPC(reflect.ValueOf(app.CreateServerChain).Pointer())
	file, _ := function.FileLine(function.Entry())
	if _, version, ok := strings.Cut(file, kubernetesModule+"@"); ok {
		version, _, _ = strings.Cut(version, "/")
		return version
	}
	return "v" + baseversion.DefaultKubeBinaryVersion + ".0"
})

// loopbackUserAgent is client-go's in a program called kube-apiserver. Upstream
// takes the field manager from it, and answers its requests also while draining.
func loopbackUserAgent() string {
	return fmt.Sprintf("kube-apiserver/%s (%s/%s) kubernetes/unknown", Release(), runtime.GOOS, runtime.GOARCH)
}

// linkedVersion reports the linked release at /version; unstamped, upstream says
// v0.0.0, and clients that look at it misbehave.
type linkedVersion struct {
	basecompatibility.EffectiveVersion
}

// Info implements compatibility.EffectiveVersion.
func (v linkedVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	if info != nil {
		info.GitVersion, info.GitTreeState = Release(), "clean"
	}
	return info
}
