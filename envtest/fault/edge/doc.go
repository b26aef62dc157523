// Package edge owns what the edges of an API server do with rules: an Injector asks a
// fault.Set about the operations of one server, and Execute, Call and Deliver let each
// operation go the way that the rules say.
//
//	answer, err := edge.Call(ctx, injector, describe, do)
//
// An edge describes its operations, and says how they can go. It never looks at rules or
// actions. Tests write rules, plans and gates by package fault, and never need this one.
//
// A partition is about a network path, not about operations: Injector.OnPartition reports
// when the path to the store is cut. Nor is the fire of a lifecycle signal: OnFire reports it.
package edge
