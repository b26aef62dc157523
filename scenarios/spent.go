package scenarios

import "time"

// Spent is where the wall time of a run went; the rest is the script's own.
type Spent struct {
	// Boots counts the starts of API servers, and Boot is how long they took.
	Boots int
	Boot  time.Duration
	// Shutdown is how long stopping the servers and the store took.
	Shutdown time.Duration
	// Check is how long checking histories took.
	Check time.Duration
}

// timing adds to a duration the time on the wall until the function it returns is
// called, also in virtual time.
func timing(to *time.Duration) (end func()) {
	began := wall()
	return func() { *to += wall() - began }
}
