package sim

import "sync/atomic"

// Enabled reports whether this program was built in sim mode.
func Enabled() bool { return enabled }

// Seed makes n decide everything that happens from now on in the bubble it is
// called in. It reports false, and does nothing, outside a bubble and in an
// ordinary build.
func Seed(n uint64) bool { return seed(n) }

// Collect collects the garbage of the bubble it is called in, as Seed does. Seed need not if nothing else
// has run in the bubble since.
func Collect() { collect() }

// Yield returns when no other goroutine of the bubble can run for the moment. In an
// ordinary build it does nothing.
func Yield() { yield() }

// Alone reports whether all other goroutines of the bubble are durably blocked. An
// ordinary build cannot tell, and it reports false.
func Alone() bool { return alone() }

// HeldUp reports whether the bubble can't come to rest because of mutexes alone: some of its
// other goroutines wait for one, and the rest are durably blocked. An ordinary build
// cannot tell, and it reports false.
func HeldUp() bool { return heldUp() }

// ChoicesHere returns what tells, in any goroutine, how many times one of the caller's bubble has been chosen to run.
// If the number does not change, either one runs without ever blocking, or none runs. It is nil outside a bubble and
// in an ordinary build.
func ChoicesHere() func() uint64 {
	n := choices()
	if n == nil {
		return nil
	}
	return func() uint64 { return atomic.LoadUint64(n) }
}
