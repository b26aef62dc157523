//go:build race

package storagetest

// Under the race detector everything takes so much longer that upstream's timeouts
// expire if cases run in parallel.
const (
	timedParallel = 1
	maxParallel   = 1
)
