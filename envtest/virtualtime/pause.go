package virtualtime

// Paused calls f, which waits for something outside of the bubble on purpose, such as
// for a person at a terminal. Virtual time stands still meanwhile, and neither Watched
// nor Bubble gives the bubble up for that.
//
//go:noinline
func Paused(f func()) { f() }

// pausedFrame is in the stack of a goroutine that is in Paused.
const pausedFrame = "/virtualtime.Paused("
