//go:build race

package contract

// The race detector is so slow that upstream's timeouts expire in parallel cases.
const (
	timedParallel = 1
	maxParallel   = 1
)
