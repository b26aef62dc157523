// Package conformance owns the list of cases, their runs and the reports of these. A case
// is a promise that a Kubernetes API server makes, and its test; the packages below cases
// have them. It is a library first: Run runs cases against a target and returns the results
// as values, and Simulate does so in virtual time. Package specs declares the same cases as
// ginkgo specs. Execute is what the command line calls.
//
//	report, err := conformance.Run(ctx, conformance.Kubeconfig{Path: path}, conformance.Cases(), nil)
//
// A case uses names of its own, depends on no other, removes what it made and never sleeps.
// It judges a server by what its API says. Cases that need one to fail, to be late or to
// have other flags launch a control plane of their own, whose rules and traces they use; the
// target is still only asked. A case passes on every conformant cluster of the linked
// release, or is not applicable, with the reason, if the target does not meet its Needs, is
// older than it is, or lacks its feature gates.
package conformance
