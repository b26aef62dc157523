// Package upstream keeps upstream's code in order where it was written for a
// process that ends with its API server: it finishes what a stopping server
// leaves under way, and reaches for the few things that upstream does not export.
// One file is one reach. Its first comment names the upstream symbol it works
// around and the test that fails when upstream changes. The package knows nothing
// of rules, traces or stores, and does not link k8s.io/kubernetes.
package upstream
