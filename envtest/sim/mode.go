package sim

import "sync/atomic"

// Enabled reports whether this program was built in sim mode.
func Enabled() bool { return enabled }

// Seed makes n decide everything that happens from now on in the bubble it is
// called in. It reports false, and does nothing, outside a bubble and in an
// ordinary build.
func Seed(n uint64) bool { return seed(n) }

// Yield returns when no other goroutine of the bubble can run for the moment. In an
// ordinary build it does nothing.
func Yield() { yield() }

// Alone reports whether all other goroutines of the bubble are durably blocked. In
// an ordinary build nobody knows, and it reports false.
func Alone() bool { return alone() }

// Choices returns what tells, in any goroutine, how many times a goroutine of the caller's
// bubble has been chosen to run: if the number stays, nothing of the bubble goes on. It is
// nil outside a bubble and in an ordinary build.
func Choices() func() uint64 {
	counter := choices()
	if counter == nil {
		return nil
	}
	return func() uint64 { return atomic.LoadUint64(counter) }
}
