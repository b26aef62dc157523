// Package conformance owns cases: promises that a Kubernetes API server keeps,
// each a value with a test. It is a library first: Run puts a target to the
// cases and returns the results as values, in real or in virtual time; the
// package specs declares the same cases as ginkgo specs; Execute is what the
// command line calls.
//
//	report, err := conformance.Run(ctx, conformance.Kubeconfig{Path: path}, conformance.Cases(), nil)
//
// A case works in names of its own, depends on no other, and takes away what it
// made. It never sleeps, never looks behind the API, and holds on every
// conformant cluster of the linked release, unless its Needs say otherwise; what
// a target can't offer is reported as skipped, with the reason.
package conformance
