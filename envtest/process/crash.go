package process

import (
	"cmp"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

// stackBytes bounds the stack in the report of a crash.
const stackBytes = 16 << 10

// CrashError is why an API server ended that was not told to: a post-start hook or the
// store has failed, or there was a fatal error or a panic.
type CrashError struct{ Err error }

// Error implements error.
func (e *CrashError) Error() string { return e.Err.Error() }

// Unwrap returns what happened.
func (e *CrashError) Unwrap() error { return e.Err }

// SiteError is the error of a crash and the place in the program where it happened, by which
// crashes can be told apart.
type SiteError struct {
	Site string // a function or a hook
	Err  error
}

// Error implements error.
func (e *SiteError) Error() string { return e.Err.Error() }

// Unwrap returns what happened.
func (e *SiteError) Unwrap() error { return e.Err }

// die reports what would have ended the member's process, and ends the goroutine.
func (m *Member) die(what string) {
	stack := make([]byte, stackBytes)
	stack = stack[:runtime.Stack(stack, false)]
	m.crashed.Store(true)
	m.crash(&SiteError{site(), fmt.Errorf("%s\n%s", what, stack)})
	runtime.Goexit()
}

// exited stands in for os.Exit after a fatal log line. In a stranger's goroutine it
// ends the process, as os.Exit would have.
func exited(exit func(int), code int) {
	shared.handled.Add(1)
	if m := current(); m != nil {
		if m.fatal.Load() != nil {
			klog.LogToStderr(false) // of a line without stacks, by klog.Exit
		}
		line := "no fatal line" // klog.OsExit may be called without one
		if fatal := cmp.Or(m.fatal.Load(), m.lastLine.Load()); fatal != nil {
			line = *fatal
		}
		m.die(fmt.Sprintf("it logged a fatal error and would have exited with code %d: %s", code, line))
	}
	exit(code)
}

// panicked is told of a panic after it was logged. When it returns, the panic goes on. That is
// right in a stranger's goroutine, and in one that serves a request, where net/http (or the
// in-memory transport) turns it into a broken connection. In any other it would end the process,
// so it is reported as a crash of the member instead.
func panicked(reason any) {
	if m := current(); m != nil && !serving() {
		m.die(fmt.Sprintf("one of its goroutines panicked: %v", reason))
	}
}

// Serve runs f, which handles a request, and says whether the server crashed
// meanwhile: its process's end breaks the connection, so the client must get no
// answer.
//
// While f runs, a panic in this goroutine breaks only the request. A panic in a
// goroutine that the request has started crashes the server: nothing would keep it from
// ending the process, and the goroutine may well outlive the request, such as that of a
// custom resource's watch cache, which the first request for the resource starts. Code
// that recovers from the panics of such a goroutine calls Serve in it.
func Serve(f func()) (crashed bool) {
	m := current()
	if m == nil {
		f()
		return false
	}
	before := m.crashed.Load()
	serve(f)
	return !before && m.crashed.Load()
}

// serve marks the goroutines that serve a request: it is on their stacks. A label
// would be inherited by all that they start.
//
//go:noinline
func serve(f func()) { f() }

// serveEntry tells serve from all other functions.
var serveEntry = reflect.ValueOf(serve).Pointer()

// serving says whether the calling goroutine serves a request.
func serving() bool {
	for frame := range callers() {
		if frame.Entry == serveEntry {
			return true
		}
	}
	return false
}

// handlers are the packages through which a panic or a fatal log line gets here.
var handlers = []string{"runtime.", "k8s.io/klog/v2.", "k8s.io/apimachinery/pkg/util/runtime.", reflect.TypeFor[Member]().PkgPath() + "."}

// site is the innermost calling function that is no handler's.
func site() string {
	for frame := range callers() {
		if !slices.ContainsFunc(handlers, func(prefix string) bool { return strings.HasPrefix(frame.Function, prefix) }) {
			return frame.Function
		}
	}
	return ""
}

// callers are the frames of the calling goroutine, the innermost first.
func callers() iter.Seq[runtime.Frame] {
	return func(yield func(runtime.Frame) bool) {
		pcs := make([]uintptr, 128)
		n := runtime.Callers(2, pcs)
		for n == len(pcs) { // perhaps not all
			pcs = make([]uintptr, 2*n)
			n = runtime.Callers(2, pcs)
		}
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var frame runtime.Frame
			if frame, more = frames.Next(); !yield(frame) {
				return
			}
		}
	}
}
