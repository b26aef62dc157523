// Package konnectivity is a fake of the proxy through which kube-apiserver's egress
// selector dials: HTTP CONNECT, over TLS or not, and konnectivity's gRPC. It owns the
// routes, which are functions of a test, and the record of all tunnels. It has no
// agents, and never dials anything by itself.
package konnectivity
