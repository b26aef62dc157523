//go:build !race

package storagetest

// How many cases run at a time, of those that time matters to and of the others,
// for each store: most of their time they wait.
const (
	timedAtOnce = 4
	atOnce      = 8
)
