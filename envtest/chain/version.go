package chain

import (
	"runtime/debug"
	"sync"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"
)

const kubernetesModule = "k8s.io/kubernetes"

// Release returns the release of the linked k8s.io/kubernetes, like "v1.37.1".
// A binary that carries no build information (a stripped one) reports the first
// patch of the linked minor.
var Release = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == kubernetesModule {
				return dep.Version
			}
		}
	}
	return "v" + baseversion.DefaultKubeBinaryVersion + ".0"
})

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
