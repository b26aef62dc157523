// Package load is one load of watch fan-out: some clients write, many watch, and each event is accounted
// for. It owns the clients, what they count and how long it took; what is written to and watched is a
// Backend, of which it has one for API servers. It starts no server, and runs one load at a time; what
// is compared with what is not its concern.
package load
