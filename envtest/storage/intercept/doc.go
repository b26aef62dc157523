// Package intercept owns the edge between an API server and its store: a client whose
// every operation asks a fault.Injector before it happens, and the order in which
// bent streams go on. It never decides what becomes of an operation, and knows of
// what is stored only where its keys begin.
package intercept
