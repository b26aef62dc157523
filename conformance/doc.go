// Package conformance owns the cases: promises that a Kubernetes API server makes,
// each with a test. It is a library first: Run runs cases against a target and
// returns the results as values, and Simulate does so in virtual time. Package specs
// declares the same cases as ginkgo specs. Execute is what the command line calls.
//
//	report, err := conformance.Run(ctx, conformance.Kubeconfig{Path: path}, conformance.Cases(), nil)
//
// A case uses names of its own, depends on no other, removes what it made, never
// sleeps and never looks behind the API. It passes on every conformant cluster of
// the linked release, or is skipped, with the reason, if its Needs are not met.
package conformance
