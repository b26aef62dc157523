package virtualtime

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"snowglobe.test/envtest/fault"
)

// With Latency, a request or a call of the store takes between MinLatency and MaxLatency, and
// up to MaxFailingLatency if the same operation has failed again and again.
const (
	MinLatency        = 50 * time.Microsecond
	MaxLatency        = time.Millisecond
	MaxFailingLatency = 128 * MaxLatency
)

const (
	// patientFailures is after how many failures in a row an operation takes twice as
	// long. Some of upstream's loops try again at once. In real time each try takes a
	// while by itself; in virtual time they would keep a CPU busy while the clock
	// hardly moves.
	patientFailures = 32
	// failurePause is the pause after which a failure begins a new row.
	failurePause = time.Second
	// maxFailing bounds how many identities are remembered.
	maxFailing = 4096
)

// Latency is how long operations take in a bubble, where work would take no time: by the
// seed and the identity of each, not its occurrence, between MinLatency and MaxLatency for
// requests and calls of the store, longer if the same has failed again and again, and
// nothing for all else. It is a fault.Latency. Make it with NewLatency.
type Latency struct {
	seed    atomic.Uint64
	working atomic.Int64 // operations in Take

	mu      sync.Mutex
	failing map[uint64]failing // what has failed lately, by identity
}

type failing struct {
	times int // in a row
	last  time.Time
}

// NewLatency returns the Latency of a seed.
func NewLatency(seed uint64) *Latency {
	l := &Latency{}
	l.seed.Store(seed)
	return l
}

// Reseed implements fault.Latency.
func (l *Latency) Reseed(seed uint64) { l.seed.Store(seed) }

// Of implements fault.Latency. An operation under a mutex has no turn. It takes no time either,
// unless it is repeated again and again without a pause: such a loop must not stop the clock.
func (l *Latency) Of(op fault.Operation) (latency time.Duration, hasTurn bool) {
	latency, hasTurn = l.usual(op), !isUnderMutex(&op)
	if latency == 0 {
		return 0, hasTurn
	}
	op.Occurrence = 0
	if !hasTurn {
		repeated := op.Priority(1) // counted like failures, but apart from those of the operation
		l.count(repeated, true)
		if l.slowdown(repeated) == 1 {
			return 0, false
		}
	}
	return latency * l.slowdown(op.Priority(0)), true
}

// usual is how long an operation takes that has not failed lately.
func (l *Latency) usual(op fault.Operation) time.Duration {
	if op.Phase != "" && op.Phase != fault.Before || !takesTime(op.Point) {
		return 0
	}
	op.Occurrence = 0
	return MinLatency + time.Duration(op.Priority(^l.seed.Load())%uint64(MaxLatency-MinLatency))
}

func takesTime(point string) bool {
	if point == fault.StoreWatchEvent {
		return false
	}
	return strings.HasPrefix(point, "store/") || strings.HasPrefix(point, fault.HTTPPoint)
}

// isUnderMutex reports whether an operation is one that libraries do under a mutex, for which
// other goroutines wait. If it took time there, time would stand still.
func isUnderMutex(op *fault.Operation) bool {
	// Upstream's allocator makes the object of an IP address before a Service gets the address
	// (k8s.io/kubernetes/pkg/registry/core/service/ipallocator, MetaAllocator).
	return isDiscovery(op) || op.Resource == "ipaddresses.networking.k8s.io"
}

// isDiscovery reports whether an operation asks which APIs there are, as controller-runtime's
// cache and RESTMappers do.
func isDiscovery(op *fault.Operation) bool {
	return op.Point == fault.HTTPPoint+"get" && op.Resource == "" &&
		(op.Key == "/api" || op.Key == "/apis" || strings.HasPrefix(op.Key, "/api/") ||
			strings.HasPrefix(op.Key, "/apis/"))
}

// Take implements fault.Latency.
func (l *Latency) Take(latency time.Duration) {
	if latency > 0 {
		l.working.Add(1)
		defer l.working.Add(-1)
		time.Sleep(latency)
	}
}

// Working returns how many operations take their time just now, without a scheduler; none
// do if l is nil.
func (l *Latency) Working() int {
	if l == nil {
		return 0
	}
	return int(l.working.Load())
}

// Report implements fault.Latency. A request whose answer fails has failed.
func (l *Latency) Report(op fault.Operation, failed bool) {
	op.Occurrence, op.Phase = 0, fault.Before
	l.count(op.Priority(0), failed)
}

// Fail implements fault.Latency. If the operation takes no time, its failure does: a loop that
// tries again at once must not stop the clock.
func (l *Latency) Fail(op fault.Operation) {
	l.Report(op, true)
	if !takesTime(op.Point) {
		op.Occurrence = 0
		l.Take(MinLatency * l.slowdown(op.Priority(0)))
	}
}

// slowdown returns by how much longer an operation takes because it keeps failing.
func (l *Latency) slowdown(identity uint64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed, ok := l.failing[identity]
	if !ok || time.Since(failed.last) > failurePause {
		return 1
	}
	return min(1<<min(failed.times/patientFailures, 10), MaxFailingLatency/MaxLatency)
}

// count remembers what became of an operation.
func (l *Latency) count(identity uint64, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, ok := l.failing[identity]
	switch {
	case !failed:
		delete(l.failing, identity)
		return
	case !ok && len(l.failing) == maxFailing, l.failing == nil:
		l.failing = map[uint64]failing{}
	case ok && time.Since(before.last) > failurePause:
		before.times = 0
	}
	l.failing[identity] = failing{before.times + 1, time.Now()}
}
