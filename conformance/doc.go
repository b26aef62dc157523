// Package conformance owns the list of conformance cases, and what the command line does with them.
// A case is a promise that a Kubernetes API server makes, and its test; the packages below cases
// have them. They are values first: package engine runs them against what package target opens, in
// real or in virtual time, and package reports tells what came of it. Package specs declares the
// same cases as ginkgo specs.
//
//	told, err := engine.Run(ctx, target.Kubeconfig{Path: path}, conformance.Cases(), nil)
//
// A case uses names of its own, depends on no other, removes what it made and never sleeps.
// It judges a server by what its API says. Cases that need one to fail, to be late or to
// have other flags launch a control plane of their own, whose rules and traces they use; the
// target is still only asked. A case passes on every conformant cluster of the linked
// release, or is not applicable, with the reason, if the target does not meet its Needs, is
// older than it is, or lacks its feature gates.
package conformance
