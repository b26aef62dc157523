// Package fault owns the one vocabulary of faults: points, where an operation can
// be intercepted; rules, which say what happens to which operations; plans, which
// are lists of rules; and the Set that the edges of a control plane consult.
//
// An edge is where operations enter or leave a server, such as its HTTP handler or its client of
// the store. It calls At at each of its points and does what the Decision says, with the help of
// package edge. Holds and delays are waited out inside At. Without rules, At is one atomic load.
//
//	set := fault.New(fault.Config{Seed: 1, Trace: recorder})
//	gate, err := set.Gate("store/put resource=configmaps name=default/a")
//	waiting, err := gate.Await(ctx, 1)
//	gate.Open()
//
// Two actions are not about operations, so At does not see them. Partition cuts a network path:
// code that uses the path calls Partitioned, and OnPartition reports changes. Fire fires a
// lifecycle signal: OnFire reports it.
//
// The package knows nothing about servers and stores. It starts no goroutine except
// that of a timer, when a Partition or Fire is due to begin or end, and never draws random
// numbers: chance is a hash of the seed, the rule and the operation.
package fault
