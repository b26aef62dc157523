// Package nodes simulates nodes: Node objects that stay ready, and what a kubelet does to
// the Pods that are bound to them, without a container. A small script says how a Pod
// fares: ready after a while, done after a while, failed, crashing again and again, or
// never started. It is a client like any other, works in virtual time, and links no
// Kubernetes but client-go.
package nodes
