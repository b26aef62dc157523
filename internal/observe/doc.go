// Package observe owns the record of what a client asks and is told: a transport that
// puts every answer and every event of a watch into a trace, with what their bodies
// say of objects, in any encoding. It changes neither requests nor answers, and keeps
// no content of an object but its metadata and a digest.
package observe
