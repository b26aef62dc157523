// Package tunnel has the cases about the way to the nodes: what the server asks of kubelets,
// directly or through a proxy, and what becomes of it when that way is broken. The kubelet and the
// proxy are fakes that speak the real protocols.
package tunnel

import "slices"

// Cases are the cases of this area.
var Cases = slices.Concat(kubeletCases, streamCases, podCases, proxyCases, brokenCases)
