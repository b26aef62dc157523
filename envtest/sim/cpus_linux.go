package sim

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// CPUs returns the numbers of the processors that this process may run on, at least one.
func CPUs() (all []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return []int{0}
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all
}

// pin has the calling goroutine run on one processor alone, with the processes that it starts. Its thread
// ends with the goroutine, so that no other is slowed down. Where the system does not let it, nothing changes.
func pin(cpu int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	_ = unix.SchedSetaffinity(0, &set)
}
