// Package envtest is controller-runtime's package of that name with the API server of
// Snowglobe: a suite moves over by the path of this import. Whatever is not Environment
// is controller-runtime's own.
package envtest
