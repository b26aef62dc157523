// Package process owns what upstream keeps once in a process, and shares it among
// the control planes in it: klog's flags and output, the exit after a fatal log
// line, the handlers of panics and errors, feature gates. It knows which control
// plane a goroutine belongs to, and waits for the last of them to end. A goroutine
// that belongs to none, such as a test's own, is called a stranger's. The package
// never looks into a control plane.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	etcd3metrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/component-base/featuregate"
)

// label is the goroutine label of everything a member starts. Goroutines inherit
// it, so that a log line, a panic or a leftover goroutine finds its control plane.
const label = "snowglobe"

// Flags are what control planes side by side share, because upstream keeps it once
// in a process. The zero value is upstream's, without privileged containers.
type Flags struct {
	// Gates are the feature gates whose values differ from those of the process.
	Gates map[featuregate.Feature]bool
	// AllowPrivileged is --allow-privileged.
	AllowPrivileged bool
	// BytesPerSecond is --max-connection-bytes-per-sec.
	BytesPerSecond int64
	// WithoutHousekeeping says that servers renew their identity leases rarely.
	WithoutHousekeeping bool
	// Verbosity is -v. That of the first member counts.
	Verbosity int
	// ContentionProfiling is --contention-profiling, by which upstream has the
	// runtime profile all blocking.
	ContentionProfiling bool
	// TakeOver are further things to own while there are members: each function takes
	// one over and returns what gives it back. The first member's count.
	TakeOver []func() (giveBack func())
}

// Member is a control plane's, or a server's, share in the process. The first
// member takes the state of the process over, and the last one gives it back.
type Member struct {
	name    string
	log     io.Writer
	crash   func(error)
	crashed atomic.Bool
	fatal   atomic.Pointer[string] // its first fatal log line
	// lastLine is its last log line of those that do not tell whether they are fatal.
	lastLine atomic.Pointer[string]
	flags    Flags
	labels   unsafe.Pointer
	ctx      context.Context
	leave    sync.Once
	dialKMS  Dialer
	monitor  atomic.Pointer[etcd3metrics.Monitor] // tells the size of its store for its metrics

	storeClients StoreClients
}

// shared is the one place that holds what members share.
var shared struct {
	sync.Mutex
	members  int
	profiled int // members that profile contention
	flags    Flags
	giveBack []func() // in the order in which it was taken
	// timers are the members that adopt what timers log, and onlyTimers is the only one, if
	// there is just one: it is read inside klog's lock.
	timers     []*Member
	onlyTimers atomic.Pointer[Member]
	// byLabels finds a member by labels, without the mutex: it is inside klog's lock.
	byLabels sync.Map
	// handled counts the calls of what stands in for upstream's handlers.
	handled atomic.Int64
}

// Join makes a member of the process. log receives what the member's goroutines
// log, a line at a time; crash is told of their fatal log lines and panics, and
// must not block. Flags that upstream keeps once in a process must agree with other
// members'. The caller leaves when all goroutines of the member have ended.
func Join(name string, flags Flags, log io.Writer, crash func(error)) (*Member, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.members > 0 && !flags.agree(shared.flags) {
		return nil, flags.disagreement(shared.flags)
	}
	m := &Member{name: name, log: log, crash: crash, flags: flags}
	m.ctx = pprof.WithLabels(context.Background(), pprof.Labels(label, name))
	m.Do(func() { m.labels = goroutineLabels() })
	shared.byLabels.Store(m.labels, m) // upstream logs what is taken over
	if shared.members == 0 {
		if err := m.takeOver(flags); err != nil {
			return nil, err
		}
		shared.flags = flags
	}
	shared.members++
	if flags.ContentionProfiling {
		shared.profiled++
	}
	return m, nil
}

// agree reports whether a control plane can run beside one with other flags. Gates has
// only those that differ from the process's, and so from the other's: there must be none.
func (f Flags) agree(other Flags) bool {
	return len(f.Gates) == 0 && f.AllowPrivileged == other.AllowPrivileged && f.BytesPerSecond == other.BytesPerSecond && f.WithoutHousekeeping == other.WithoutHousekeeping
}

// disagreement is the error for flags that do not agree with others.
func (f Flags) disagreement(other Flags) error {
	const share = "control planes side by side share "
	if f.WithoutHousekeeping != other.WithoutHousekeeping {
		return errors.New(share + "their housekeeping: one is WithoutHousekeeping and the other is not; say it for both, or do not run them at the same time")
	}
	return fmt.Errorf(share+"feature gates, --allow-privileged and --max-connection-bytes-per-sec: "+
		"another one runs without %s; stop it first, or start this one with the same flags", f)
}

// String says what control planes must agree on.
func (f Flags) String() string {
	var gates []string
	for _, name := range slices.Sorted(maps.Keys(f.Gates)) {
		gates = append(gates, fmt.Sprintf("%s=%t", name, f.Gates[name]))
	}
	return fmt.Sprintf("feature gates %q, --allow-privileged=%t, --max-connection-bytes-per-sec=%d", strings.Join(gates, ","), f.AllowPrivileged, f.BytesPerSecond)
}

// Leave ends the membership. The last member gives back the state of the process.
func (m *Member) Leave() {
	m.leave.Do(func() {
		shared.Lock()
		defer shared.Unlock()
		defer shared.byLabels.Delete(m.labels)
		if m.flags.ContentionProfiling {
			shared.profiled--
			if shared.profiled == 0 {
				runtime.SetBlockProfileRate(0) // the runtime does not tell the rate before; off is its default
			}
		}
		adoptTimers(slices.DeleteFunc(shared.timers, func(other *Member) bool { return other == m }))
		shared.members--
		if shared.members == 0 {
			m.Do(giveBack)
		}
	})
}

// takeOver takes the state of the process over as the member, whose log tells of it.
func (m *Member) takeOver(flags Flags) (err error) {
	m.Do(func() {
		if err = takeOver(flags); err != nil {
			giveBack()
		}
	})
	if err != nil {
		shared.byLabels.Delete(m.labels)
	}
	return err
}

// Do runs f with the member's label: until f returns, this goroutine is the member's, and
// so are all goroutines that f starts.
func (m *Member) Do(f func()) {
	defer m.Enter()()
	f()
}

// Enter gives this goroutine the member's label until it calls leave.
func (m *Member) Enter() (leave func()) {
	before := goroutineLabels()
	pprof.SetGoroutineLabels(m.ctx)
	return func() { setGoroutineLabels(before) }
}

// Go runs f in a goroutine of the member. The channel is closed when it has ended,
// and a panic or a fatal log line in it been reported as a crash.
func (m *Member) Go(f func()) (ended <-chan struct{}) {
	done := make(chan struct{})
	m.Do(func() {
		go func() {
			defer close(done)
			defer utilruntime.HandleCrash()
			f()
		}()
	})
	return done
}

// AdoptTimers makes the member's log receive what the goroutines of timers log, as long as no
// other member adopts them too: nothing says which member has set a timer.
func (m *Member) AdoptTimers() {
	shared.Lock()
	defer shared.Unlock()
	adoptTimers(append(shared.timers, m))
}

// adoptTimers makes these the members that adopt what timers log. shared is locked.
func adoptTimers(members []*Member) {
	shared.timers = members
	shared.onlyTimers.Store(nil)
	if len(members) == 1 {
		shared.onlyTimers.Store(members[0])
	}
}

// current returns whose goroutine this is, nil for a stranger's.
func current() *Member {
	m, ok := shared.byLabels.Load(goroutineLabels())
	if !ok {
		return nil
	}
	return m.(*Member)
}
