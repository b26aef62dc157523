package process

import (
	"runtime/debug"
	"sync"
)

// The garbage collector's default, and what it is while servers boot.
const (
	defaultGCPercent = 100
	bootGCPercent    = 400
)

var boots struct {
	mu      sync.Mutex
	running int
	raised  bool
}

// Boot lets the heap grow until end is called: a boot allocates some 80 MB, most of which stay, and
// the collector would look through them again and again, for a fifth of the boot's time. It changes
// nothing where GOGC or the program has chosen a percentage; GOMEMLIMIT is always obeyed.
func Boot() (end func()) {
	boots.mu.Lock()
	defer boots.mu.Unlock()
	boots.running++
	if boots.running == 1 {
		boots.raised = replaceGCPercent(defaultGCPercent, bootGCPercent)
	}
	return sync.OnceFunc(func() {
		boots.mu.Lock()
		defer boots.mu.Unlock()
		boots.running--
		if boots.running == 0 && boots.raised {
			replaceGCPercent(bootGCPercent, defaultGCPercent)
		}
	})
}

// replaceGCPercent sets a percentage in place of another, and nothing in place of any other.
func replaceGCPercent(was, percent int) bool {
	found := debug.SetGCPercent(percent)
	if found != was {
		debug.SetGCPercent(found)
	}
	return found == was
}
