// Package pinned is of a module that is pinned to Kubernetes 1.36. Its tests hold a write where
// it is about to be committed, and go back to a state of the store: what the API server of
// Snowglobe can, it can from another process too.
package pinned
