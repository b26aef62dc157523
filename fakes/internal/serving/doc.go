// Package serving serves the fakes whose answers last: streams, tunnels and watches.
// It ends them when the fake stops, it can break connections off at any moment, also
// those that a handler has taken over, and it knows who is at the other end. It knows
// nothing of what the fakes speak.
package serving
