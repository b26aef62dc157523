// Package objectcmp provides options for go-cmp that compare Kubernetes API objects the way
// the API does, as protocmp does for protocol buffers:
//
//	diff := cmp.Diff(want, got, objectcmp.Equate(), objectcmp.IgnoreServerFields())
//
// They work for typed objects of any group, for custom resources and unstructured objects,
// and for lists of them. Nothing is ever converted: a typed object and an unstructured one
// always differ, and so do an object and what the API server's defaulting makes of it.
package objectcmp
