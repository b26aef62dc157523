//go:build unix

package wall

import (
	"syscall"
	"time"
)

// now is a time on the wall, which a bubble hides: the operating system is asked.
func now() time.Duration {
	var at syscall.Timeval
	if syscall.Gettimeofday(&at) != nil {
		return 0
	}
	return time.Duration(at.Nano())
}
