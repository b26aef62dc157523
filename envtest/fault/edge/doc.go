// Package edge owns what the edges of an API server do with rules. An edge is where operations
// enter or leave the server, such as its HTTP handler or its client of the store. An Injector
// asks a fault.Set about the operations of one server, and Execute, Call and Deliver let each
// operation go the way that the rules say.
//
//	answer, err := edge.Call(ctx, injector, describe, do)
//
// An edge describes its operations, and says how they can go. It never looks at rules or
// actions. Tests write rules, plans and gates by package fault, and never need this one.
//
// Two actions are not about operations, so Execute does not see them: Injector.OnPartition
// reports when the path to the store is cut, and OnFire when a lifecycle signal is to fire.
package edge
