// Package fault owns the one vocabulary of faults: points, where an operation can
// be intercepted; rules, which say what becomes of which operation; plans, which
// are lists of rules; and the Set that the injectors of a control plane ask.
//
// An Injector asks At at each of its points and does what the Decision says.
// Holds and delays are waited out inside At. With no rules At is one atomic load.
//
//	set := fault.New(fault.Config{Seed: 1, Trace: recorder})
//	gate, err := set.Gate("store/put resource=configmaps name=default/a")
//	waiting, err := gate.Await(ctx, 1)
//	gate.Open()
//
// Execute, Call and Deliver ask, and do what an action means for a request or an
// event of a stream. A partition is about a network path, not about operations:
// who uses the path asks Partitioned, and OnPartition tells of changes.
//
// The package knows nothing of servers and stores. It starts no goroutine but
// that of a timer, when the time of a partition begins or ends, and never draws
// random numbers: chance is a hash of the seed, the rule and the operation.
package fault
