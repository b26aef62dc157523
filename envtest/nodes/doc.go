// Package nodes simulates nodes: Node objects that stay ready, and what a kubelet does to
// the Pods bound to them, without running any containers. A small script says how a Pod
// behaves: ready after a while, completed after a while, failed, in a crash loop, or never
// started. The package is a client like any other, works in virtual time, and links nothing
// of Kubernetes except client-go.
package nodes
