package scenarios

import "time"

// Spent is where the time of a run on the wall went; what is left is the script's.
type Spent struct {
	// Boots counts the starts of API servers, and Boot is how long they took.
	Boots int
	Boot  time.Duration
	// Shutdown is how long the ends of servers and of the store took.
	Shutdown time.Duration
	// Check is how long histories were judged.
	Check time.Duration
}

// timing adds to a duration the time on the wall until the function it returns is
// called, also in virtual time.
func timing(to *time.Duration) (end func()) {
	began := wall()
	return func() { *to += wall() - began }
}
