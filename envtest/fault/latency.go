package fault

import (
	"strings"
	"sync"
	"time"
)

// How long a request and a call of the store take by Latency, at least and at most;
// and at most when the same has failed again and again.
const (
	MinLatency        = 50 * time.Microsecond
	MaxLatency        = time.Millisecond
	MaxFailingLatency = 128 * MaxLatency
)

// Latency is how long an operation takes where time is virtual, and work would take
// none: by the seed and its identity, not its occurrence, between MinLatency and
// MaxLatency for requests and calls of the store, and nothing for all else.
func Latency(seed uint64, op Operation) time.Duration {
	if op.Phase != "" && op.Phase != Before || !takesTime(op.Point) {
		return 0
	}
	op.Occurrence = 0
	return MinLatency + time.Duration(op.Priority(^seed)%uint64(MaxLatency-MinLatency))
}

func takesTime(point string) bool {
	if point == StoreWatchEvent {
		return false
	}
	return strings.HasPrefix(point, "store/") || strings.HasPrefix(point, HTTPPoint)
}

const (
	// patientFailures is after how many failures in a row an operation takes twice
	// as long: some of upstream's loops try again at once. Outside, a machine can do
	// so many in a second; here each would cost real time, and none of it virtual.
	patientFailures = 32
	// failurePause is after what pause a failure is no longer one in a row.
	failurePause = time.Second
	// maxFailing bounds how many identities are remembered.
	maxFailing = 4096
)

// repeated are the operations that have failed lately, by identity.
type repeated struct {
	mu      sync.Mutex
	failing map[uint64]failing
}

type failing struct {
	times int // in a row
	last  time.Time
}

// slowdown returns by how much longer an operation takes because it keeps failing.
func (r *repeated) slowdown(identity uint64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	failed, ok := r.failing[identity]
	if !ok || time.Since(failed.last) > failurePause {
		return 1
	}
	return min(1<<min(failed.times/patientFailures, 10), MaxFailingLatency/MaxLatency)
}

// report remembers what became of an operation.
func (r *repeated) report(identity uint64, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, ok := r.failing[identity]
	switch {
	case !failed:
		delete(r.failing, identity)
		return
	case !ok && len(r.failing) == maxFailing, r.failing == nil:
		r.failing = map[uint64]failing{}
	case ok && time.Since(before.last) > failurePause:
		before.times = 0
	}
	r.failing[identity] = failing{before.times + 1, time.Now()}
}

// latency is how long an operation of the set takes.
func (s *Set) latency(op Operation) time.Duration {
	if !s.config.Latency {
		return 0
	}
	d := Latency(s.config.Seed, op)
	if d == 0 {
		return 0
	}
	op.Occurrence = 0
	if op.isUnderMutex() {
		// Whoever asks again and again without a pause must not stop the clock: only the
		// first questions in a row take no time.
		question := op.Priority(1)
		s.repeated.report(question, true)
		if s.repeated.slowdown(question) == 1 {
			return 0
		}
	}
	return d * s.repeated.slowdown(op.Priority(0))
}

// isUnderMutex reports whether an operation is one that libraries do under a mutex, for which
// other goroutines wait. If it took time there, time would stand still.
func (o *Operation) isUnderMutex() bool { return o.isDiscovery() || o.isAllocation() }

// isDiscovery reports whether an operation asks which APIs there are, as controller-runtime's
// cache and RESTMappers do.
func (o *Operation) isDiscovery() bool {
	return o.Point == HTTPPoint+"get" && o.Resource == "" &&
		(o.Key == "/api" || o.Key == "/apis" || strings.HasPrefix(o.Key, "/api/") || strings.HasPrefix(o.Key, "/apis/"))
}

// isAllocation reports whether an operation is about the object of an IP address, which
// upstream's allocator makes before a Service gets the address
// (k8s.io/kubernetes/pkg/registry/core/service/ipallocator, MetaAllocator).
func (o *Operation) isAllocation() bool { return o.Resource == "ipaddresses.networking.k8s.io" }

func (s *Set) takeTime(d time.Duration) {
	if d > 0 {
		s.working.Add(1)
		defer s.working.Add(-1)
		time.Sleep(d)
	}
}

// Working returns how many operations take their time just now, without a scheduler.
func (s *Set) Working() int { return int(s.working.Load()) }

// Report tells what became of a request or a call of the store: what fails again and
// again takes longer, where Latency says that it takes time. A request whose answer
// fails has failed.
func (i *Injector) Report(describe func() Operation, failed bool) {
	if !i.Latency() {
		return
	}
	op := i.describeAs(describe)
	op.Occurrence, op.Phase = 0, Before
	i.set.repeated.report(op.Priority(0), failed)
}

// takeTimeToFail makes a failure take time where the operation takes none: who tries
// again at once must not stop the clock.
func (i *Injector) takeTimeToFail(describe func() Operation) {
	if !i.Latency() {
		return
	}
	op := i.describeAs(describe)
	if takesTime(op.Point) {
		return
	}
	op.Occurrence = 0
	i.set.takeTime(MinLatency * i.set.repeated.slowdown(op.Priority(0)))
}
