//go:build !race

package storagetest

// How many cases run at a time for each store: those marked timed, and the others.
// They spend most of their time waiting.
const (
	timedParallel = 4
	maxParallel   = 8
)
