//go:build !race

package storagetest

// How many timed and other cases run at a time for each store. They mostly wait.
const (
	timedParallel = 4
	maxParallel   = 8
)
