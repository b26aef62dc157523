// Package serve owns the way of requests to one API server: a listener in memory
// and, on request, at a port; connections of clients inside the process, which
// call the server's handler; and the loopback, by which the server calls itself.
// All of it is one value, the Endpoint. The package knows nothing of Kubernetes
// beyond net/http, and never authenticates or routes a request.
package serve
