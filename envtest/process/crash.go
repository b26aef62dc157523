package process

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
)

// stackBytes bounds the stack in the report of a crash.
const stackBytes = 16 << 10

// die reports what would have ended the member's process, and ends the goroutine.
func (m *Member) die(what string) {
	stack := make([]byte, stackBytes)
	stack = stack[:runtime.Stack(stack, false)]
	m.crashed.Store(true)
	m.crash(fmt.Errorf("%s\n%s", what, stack))
	runtime.Goexit()
}

// exited stands in for os.Exit after a fatal log line. A stranger's ends the
// process, as it would have.
func exited(exit func(int), code int) {
	shared.handled.Add(1)
	if m := current(); m != nil {
		line := "no fatal line" // who exits need not log one
		if fatal := m.fatal.Load(); fatal != nil {
			line = *fatal
		}
		m.die(fmt.Sprintf("the API server logged a fatal error and would have exited with code %d: %s", code, line))
	}
	exit(code)
}

// panicked is the last of upstream's handlers of a panic, which then goes on. It
// may in a stranger's goroutine, and in one that serves a request: net/http (or the
// in-memory transport) makes a broken connection of it. Any other ends the process.
func panicked(_ context.Context, reason any) {
	shared.handled.Add(1)
	if m := current(); m != nil && !serving() {
		m.die(fmt.Sprintf("a goroutine of the API server panicked: %v", reason))
	}
}

// Serve runs f, which handles a request, and says whether the server crashed
// meanwhile: its process's end breaks the connection, so the client must get no
// answer.
//
// While f runs, a panic in this goroutine is the request's. One in a goroutine that
// the request has started is the server's, because nothing keeps it from ending the
// process, and what a request is the first to need, such as a custom resource's
// watch cache, outlives it. Who catches the panics of such a goroutine calls Serve
// in it.
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
	callers := make([]uintptr, 128)
	n := runtime.Callers(2, callers)
	for n == len(callers) { // perhaps not all
		callers = make([]uintptr, 2*n)
		n = runtime.Callers(2, callers)
	}
	frames := runtime.CallersFrames(callers[:n])
	for {
		frame, more := frames.Next()
		if frame.Entry == serveEntry {
			return true
		}
		if !more {
			return false
		}
	}
}
