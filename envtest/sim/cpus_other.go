//go:build !linux

package sim

// CPUs returns one number, whatever it means: only on Linux are there copies, for which it matters.
func CPUs() []int { return []int{0} }

func pin(int) {}
