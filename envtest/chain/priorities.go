package chain

import (
	_ "unsafe" // for go:linkname

	"k8s.io/apimachinery/pkg/runtime/schema"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app" // declares the variable
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// apiVersionPriorities is upstream's order of the built-in groups in discovery.
// Upstream does not export it, and builds its aggregator only together with the
// servers behind it, which the chain must wrap to see which of them answers.
//
//go:linkname apiVersionPriorities k8s.io/kubernetes/cmd/kube-apiserver/app.apiVersionPriorities
var apiVersionPriorities map[schema.GroupVersion]controlplaneapiserver.APIServicePriority
