//go:build race

package storagetest

// Under the race detector everything takes so much longer that upstream's
// patience ends when cases run at a time.
const (
	timedAtOnce = 1
	atOnce      = 1
)
