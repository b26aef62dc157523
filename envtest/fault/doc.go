// Package fault owns the one vocabulary of faults: points, where an operation can
// be intercepted; rules, which say what happens to which operations; plans, which
// are lists of rules; and the Set that the edges of a control plane consult.
//
// An edge calls At at each of its points and does what the Decision says, by package edge.
// Holds and delays are waited out inside At. Without rules, At is one atomic load.
//
//	set := fault.New(fault.Config{Seed: 1, Trace: recorder})
//	gate, err := set.Gate("store/put resource=configmaps name=default/a")
//	waiting, err := gate.Await(ctx, 1)
//	gate.Open()
//
// A partition is about a network path, not about operations: code that uses the path calls
// Partitioned, and OnPartition reports changes. Nor is the fire of a lifecycle signal: OnFire
// reports it.
//
// The package knows nothing about servers and stores. It starts no goroutine except
// that of a timer, when such a rule is due to begin or end, and never draws random
// numbers: chance is a hash of the seed, the rule and the operation.
package fault
