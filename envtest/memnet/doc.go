// Package memnet owns the network inside the process: a listener and dialer
// whose connections are memory, and an [http.RoundTripper] that calls a
// handler directly, with no HTTP bytes in between. Both behave like the wire
// they replace (back-pressure, cancellation, broken connections), and both
// block durably inside a testing/synctest bubble, as long as the listener or
// transport and the contexts given to it were made inside that bubble.
//
// It never opens a socket, and it knows nothing of Kubernetes.
package memnet
