// Package sample has tests that run Kubernetes' sample-apiserver, an aggregated API server as its
// authors build them, behind a control plane that knows nothing about it. It is a module of its
// own, because of what that server requires.
package sample
