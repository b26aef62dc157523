// Package envtest is controller-runtime's package of that name with the API server of
// Snowglobe in another process, which all packages of a "go test ./..." share: see package
// client. A suite moves over by the path of this import, and keeps the k8s.io modules that it
// has. Whatever is not Environment is controller-runtime's own.
package envtest
