package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	etcd3metrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/feature"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/capabilities"
)

// processLabel is the goroutine label of everything a chain starts. Goroutines
// inherit it, which is how a log line, a panic or a leftover goroutine finds its
// chain in a process that runs several.
const processLabel = "snowglobe"

// Member is a chain's share in the process-wide state of upstream's libraries:
// klog, feature gates, crash handling. The first member of a process takes that
// state over and the last one puts back what was there.
type Member struct {
	name   string
	log    io.Writer
	crash  func(error)
	labels unsafe.Pointer
	ctx    context.Context
	once   sync.Once
}

// process is the one place that holds what upstream keeps once in a process.
var process struct {
	sync.Mutex
	count   int
	shared  sharedFlags
	restore []func()
	// members by the labels of their goroutines; looked up without the mutex,
	// from inside klog's own lock.
	members sync.Map
	// handled counts the errors and panics that upstream's handlers were told of.
	handled atomic.Int64
}

// sharedFlags are what chains side by side must agree on, because upstream keeps
// it once in a process.
type sharedFlags struct {
	gates           string
	allowPrivileged bool
	bytesPerSecond  int64
}

// Join makes the calling chain a member of the process. The log receives what
// its goroutines log; crash is told of their fatal log lines and panics. Flags
// that upstream keeps once in a process must agree with the other members'.
func Join(name string, flags *Flags, log io.Writer, crash func(error)) (*Member, error) {
	process.Lock()
	defer process.Unlock()
	want := sharedFlags{
		gates:           gatesText(flags.Gates()),
		allowPrivileged: flags.AllowPrivileged(),
		bytesPerSecond:  flags.MaxConnectionBytesPerSec(),
	}
	if process.count > 0 && (want.gates != "" || want.allowPrivileged != process.shared.allowPrivileged || want.bytesPerSecond != process.shared.bytesPerSecond) {
		return nil, fmt.Errorf("control planes side by side share feature gates, --allow-privileged and --max-connection-bytes-per-sec: "+
			"another one runs without %s; stop it first, or start this one with the same flags", describe(want))
	}
	member := &Member{name: name, log: log, crash: crash}
	member.ctx = pprof.WithLabels(context.Background(), pprof.Labels(processLabel, name))
	member.Do(func() { member.labels = goroutineLabels() })
	if process.count == 0 {
		if err := takeOver(flags.Gates(), flags.Verbosity()); err != nil {
			giveBack()
			return nil, err
		}
		process.shared = want
	}
	process.members.Store(member.labels, member)
	process.count++
	return member, nil
}

func gatesText(gates map[featuregate.Feature]bool) string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		text = append(text, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return strings.Join(text, ",")
}

func describe(flags sharedFlags) string {
	return fmt.Sprintf("feature gates %q, --allow-privileged=%t, --max-connection-bytes-per-sec=%d", flags.gates, flags.allowPrivileged, flags.bytesPerSecond)
}

// Leave ends the membership; the last member puts back the process's state. All
// goroutines of the member must have ended.
func (m *Member) Leave() {
	m.once.Do(func() {
		process.Lock()
		defer process.Unlock()
		process.members.Delete(m.labels)
		process.count--
		if process.count == 0 {
			giveBack()
		}
	})
}

// Do runs f with the member's goroutine label, and everything f starts.
func (m *Member) Do(f func()) {
	before := goroutineLabels()
	pprof.SetGoroutineLabels(m.ctx)
	defer setGoroutineLabels(before)
	f()
}

// Go runs f in a goroutine of the member.
func (m *Member) Go(f func()) {
	m.Do(func() { go f() })
}

// takeOver replaces the process-wide state; giveBack restores it in reverse.
func takeOver(gates map[featuregate.Feature]bool, verbosity int) error {
	undo := func(f func()) { process.restore = append(process.restore, f) }

	if err := takeOverKlog(verbosity, undo); err != nil {
		return err
	}

	exit, crash, handlers := klog.OsExit, utilruntime.ReallyCrash, utilruntime.PanicHandlers
	undo(func() {
		awaitHandled()
		klog.OsExit, utilruntime.ReallyCrash, utilruntime.PanicHandlers = exit, crash, handlers
	})
	klog.OsExit = func(code int) { exited(exit, code) }
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = append(slices.Clip(handlers), panicked)

	// The second of upstream's error handlers sleeps until a millisecond after
	// the last error of the process: 26 years, when that was in real time and
	// this one is in virtual time.
	errorHandlers := utilruntime.ErrorHandlers
	undo(func() {
		awaitHandled()
		utilruntime.ErrorHandlers = errorHandlers
	})
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{errorHandlers[0], pauseAfterError}

	checker := feature.DefaultFeatureSupportChecker
	undo(func() { feature.DefaultFeatureSupportChecker = checker })
	feature.DefaultFeatureSupportChecker = feature.NewDefaultFeatureSupportChecker()

	// Nobody can ever close the channel upstream makes for this, and one made
	// outside a bubble keeps virtual time from passing; nil does neither.
	never := wait.NeverStop
	undo(func() { wait.NeverStop = never })
	wait.NeverStop = nil

	undo(capabilities.ResetForTest)
	undo(func() {
		etcd3metrics.SetStorageMonitorGetter(func() ([]etcd3metrics.Monitor, error) { return nil, nil })
	})
	copies := atomic.LoadInt64(&jsonpatch.AccumulatedCopySizeLimit)
	undo(func() { atomic.StoreInt64(&jsonpatch.AccumulatedCopySizeLimit, copies) })
	return setGates(gates, undo)
}

// neverStop keeps two chains from setting wait.NeverStop at once.
var neverStop sync.Mutex

// withNeverStop runs f while wait.NeverStop is a channel that the caller closes
// some day. Upstream hands it to a goroutine that a chain which never runs would
// leave behind.
func withNeverStop(stop <-chan struct{}, f func()) {
	neverStop.Lock()
	defer neverStop.Unlock()
	wait.NeverStop = stop
	defer func() { wait.NeverStop = nil }()
	f()
}

func setGates(gates map[featuregate.Feature]bool, undo func(func())) error {
	if len(gates) == 0 {
		return nil
	}
	gate := utilfeature.DefaultMutableFeatureGate
	set, before := map[string]bool{}, map[string]bool{}
	var unset []featuregate.Feature
	for name, value := range gates {
		set[string(name)], before[string(name)] = value, gate.Enabled(name)
		if !gate.ExplicitlySet(name) {
			unset = append(unset, name)
		}
	}
	undo(func() {
		// First all values, so that no dependency between gates is violated on
		// the way, then the memory of having been set.
		utilruntime.Must(gate.SetFromMap(before))
		for _, name := range unset {
			utilruntime.Must(gate.ResetFeatureValueToDefault(name))
		}
	})
	if err := gate.SetFromMap(set); err != nil {
		return fmt.Errorf("set feature gates: %w", err)
	}
	return nil
}

// pauseAfterError keeps a loop that fails at once from spinning.
func pauseAfterError(context.Context, error, string, ...any) {
	process.handled.Add(1)
	time.Sleep(time.Millisecond)
}

// awaitHandled orders what comes after it behind every read of upstream's
// handlers, for which upstream has no lock: who has read them has counted since.
// That all of them have ended is known from their labels, which orders nothing.
func awaitHandled() { _ = process.handled.Load() }

func giveBack() {
	for _, undo := range slices.Backward(process.restore) {
		undo()
	}
	process.restore = nil
}

// memberOfGoroutine finds whose goroutine this is, nil for nobody's.
func memberOfGoroutine() *Member {
	member, ok := process.members.Load(goroutineLabels())
	if !ok {
		return nil
	}
	return member.(*Member)
}

// logRouter writes a log line to the log of the chain whose goroutine logs it,
// and any other line to stderr, where klog writes by default.
type logRouter struct{}

// Write implements io.Writer.
func (logRouter) Write(line []byte) (int, error) {
	if member := memberOfGoroutine(); member != nil {
		return member.log.Write(line)
	}
	return os.Stderr.Write(line)
}

// exited stands in for os.Exit after a fatal log line: it ends the goroutine,
// not the process, when the goroutine belongs to a chain.
func exited(exit func(int), code int) {
	member := memberOfGoroutine()
	if member == nil {
		exit(code)
		return
	}
	stack := make([]byte, 16<<10)
	stack = stack[:runtime.Stack(stack, false)]
	member.crash(fmt.Errorf("the API server logged a fatal error and would have exited with code %d; its log has the message\n%s", code, stack))
	runtime.Goexit()
}

// panicked decides about a panic upstream has caught and logged. The panic of a
// request goes on, as net/http (or the in-memory transport) turns it into a
// broken connection; that of a stranger's goroutine goes on too.
func panicked(_ context.Context, reason any) {
	process.handled.Add(1)
	member := memberOfGoroutine()
	if err, ok := reason.(error); member == nil || ok && errors.Is(err, http.ErrAbortHandler) || inRequest() {
		panic(reason)
	}
	stack := make([]byte, 16<<10)
	stack = stack[:runtime.Stack(stack, false)]
	member.crash(fmt.Errorf("a goroutine of the API server panicked: %v\n%s", reason, stack))
}

// inRequest says whether the calling goroutine serves a request.
func inRequest() bool {
	callers := make([]uintptr, 128)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "requestTracer).outermost") {
			return true
		}
		if !more {
			return false
		}
	}
}
