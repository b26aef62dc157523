// Package objectcmp owns options for go-cmp that compare Kubernetes API objects as the API
// does, as protocmp is for protocol buffers:
//
//	diff := cmp.Diff(want, got, objectcmp.Equate(), objectcmp.IgnoreServerFields())
//
// They serve typed objects of any group, custom resources and unstructured ones alike, and
// lists of them. It never converts: a typed object and an unstructured one always differ,
// and so does an object from what the API server makes of it by its defaults.
package objectcmp
