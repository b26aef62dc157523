//go:build !race

package contract

// How many timed and other cases run at a time. They mostly wait.
const (
	timedParallel = 6
	maxParallel   = 10
)
