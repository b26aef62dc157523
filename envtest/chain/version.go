package chain

import (
	"fmt"
	"runtime"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"

	"snowglobe.test/envtest/linked"
)

// loopbackUserAgent is client-go's in a program called kube-apiserver. Upstream
// takes the field manager from it, and answers its requests also while draining.
func loopbackUserAgent() string {
	return fmt.Sprintf("kube-apiserver/%s (%s/%s) kubernetes/unknown", linked.Release(), runtime.GOOS, runtime.GOARCH)
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
		info.GitVersion, info.GitTreeState = linked.Release(), "clean"
	}
	return info
}
