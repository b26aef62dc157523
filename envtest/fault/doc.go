// Package fault owns the one vocabulary of faults: points, where an operation
// can be seen and bent; rules, which say what becomes of which operation; plans,
// which are lists of rules; and the Set that the edges of a control plane ask.
//
// An edge asks At at each of its points and does what the Decision says. Holds
// and delays are waited out inside At; everything else is the edge's to do. With
// no rules At is one atomic load.
//
//	set := fault.New(fault.Config{Seed: 1, Trace: recorder})
//	gate, err := set.Gate("store/put resource=configmaps name=default/a")
//	waiting, err := gate.Await(ctx, 1)
//	gate.Open()
//
// The package knows nothing of servers and stores. It never does what an action
// says, never starts a goroutine, and never draws from a stream of random numbers:
// chance is a hash of the seed, the rule and the operation.
package fault
