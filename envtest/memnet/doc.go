// Package memnet owns the network inside the process: a listener and dialer
// whose connections are memory, and an [http.RoundTripper] that calls a handler
// with no HTTP bytes in between. Both behave like the wire (back-pressure,
// cancellation, broken connections), and both block durably inside a
// testing/synctest bubble, as long as they and the contexts given to them were
// made in it. It never opens a socket, and knows nothing of Kubernetes.
package memnet
