package process

import (
	"runtime/debug"
	"runtime/metrics"
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

// Boot lets the heap grow until end is called: a boot allocates some 80 MB, and the collector would
// take a fifth of its time. It changes nothing where GOGC or the program has chosen another percentage
// than the default; GOMEMLIMIT is always obeyed.
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
func replaceGCPercent(was uint64, percent int) bool {
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}} // setting it, to see what it was, could start a collection
	metrics.Read(now)
	if now[0].Value.Uint64() != was {
		return false
	}
	debug.SetGCPercent(percent)
	return true
}
