// Package wall owns time on the wall, which virtual time hides. It never waits.
package wall

import "time"

// Timing adds to a duration the time on the wall until the function it returns is
// called, also in virtual time.
func Timing(to *time.Duration) (end func()) {
	began := now()
	return func() { *to += now() - began }
}
