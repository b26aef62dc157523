//go:build unix

package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is how long CPUs have worked for this process.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
