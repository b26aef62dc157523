// Package conformance owns the cases: promises that a Kubernetes API server makes, each
// with a test. It is a library first: Run runs cases against a target and returns the
// results as values, and Simulate does so in virtual time. Package specs declares the
// same cases as ginkgo specs. Execute is what the command line calls.
//
//	report, err := conformance.Run(ctx, conformance.Kubeconfig{Path: path}, conformance.Cases(), nil)
//
// A case uses names of its own, depends on no other case, and removes what it made. It
// never sleeps and never looks behind the API. It passes on every conformant cluster of
// the linked release, unless its Needs say otherwise: a case whose needs a target does
// not meet is reported as skipped, with the reason.
package conformance
