// Package sim owns sim mode: a build of a program in which the seed of a bubble of
// virtual time decides everything that happens there, down to which goroutine runs
// next. Such a build replaces a few lines of Go's own source, found by their text
// in the Go that is installed (go build -overlay): the folder overlay has a unified
// diff for each of them. The package knows nothing of Kubernetes.
//
// In sim mode a program has one processor. In a bubble the seed decides: which
// runnable goroutine is next, which case of a select, the order of a map's keys,
// which of several timers due at one moment fires first, math/rand, and the bytes
// of crypto/rand. Garbage is collected where nothing runs. Two bubbles at once do
// not disturb each other's choices, but share the garbage collector and whatever
// the program keeps in package variables.
//
// The seed does not decide what comes from outside the bubble: sockets, files that
// change, other processes, channels and mutexes shared with goroutines outside,
// caches that an earlier bubble of the process has filled; and not what a program
// makes of an address, such as %p.
package sim
