package process

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

type panicHandler = func(context.Context, any)

// upstreamErrors and upstreamPanics are the handlers of upstream: whatever the program makes of
// utilruntime's, a server logs its errors and its panics.
var (
	upstreamErrors = slices.Clone(utilruntime.ErrorHandlers)
	upstreamPanics = slices.Clone(utilruntime.PanicHandlers)
	memberErrors   = briefly(upstreamErrors)
)

// programErrors and programPanics are the handlers that the program had when the first member
// joined. They get what a stranger's goroutine reports.
var (
	programErrors atomic.Pointer[[]utilruntime.ErrorHandler]
	programPanics atomic.Pointer[[]panicHandler]
)

// takeOverHandlers replaces what upstream calls on fatal lines, panics and errors.
func takeOverHandlers() {
	exit, panics, errs := klog.OsExit, utilruntime.PanicHandlers, utilruntime.ErrorHandlers
	onGiveBack(func() {
		// What follows happens after (in Go's memory model) every read that a member's goroutine has made
		// of upstream's handlers. These have no lock, but each reader has counted in shared.handled since.
		// That all these goroutines have ended is known from their labels, but that establishes no
		// happens-before.
		_ = shared.handled.Load()
		klog.OsExit = exit
		utilruntime.PanicHandlers = restored(utilruntime.PanicHandlers, handlePanic, panics)
		utilruntime.ErrorHandlers = restored(utilruntime.ErrorHandlers, handleError, errs)
	})
	klog.OsExit = func(code int) { exited(exit, code) }
	theirs := briefly(errs)
	programErrors.Store(&theirs)
	programPanics.Store(&panics)
	utilruntime.PanicHandlers = []panicHandler{handlePanic}
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{handleError}
}

// briefly has pauseAfterError stand in for upstream's second handler of errors. That one sleeps until
// a millisecond after the last error of the process: 26 years in virtual time, if that was in real
// time.
func briefly(handlers []utilruntime.ErrorHandler) []utilruntime.ErrorHandler {
	handlers = slices.Clone(handlers)
	for i, handle := range handlers {
		if len(upstreamErrors) > 1 && isSame(handle, upstreamErrors[1]) {
			handlers[i] = pauseAfterError
		}
	}
	return handlers
}

// isSame reports whether two functions have the same code.
func isSame[F any](a, b F) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

// restored puts what was there before in the place of ours. What the program has added meanwhile
// stays; if it has set handlers of its own instead, all of them do.
func restored[F any](now []F, ours F, before []F) []F {
	i := slices.IndexFunc(now, func(f F) bool { return isSame(f, ours) })
	switch {
	case i < 0:
		return now
	case len(now) == 1:
		return before
	}
	return slices.Concat(now[:i], before, now[i+1:])
}

// handleError is the only one of upstream's handlers of errors.
func handleError(ctx context.Context, err error, msg string, keysAndValues ...any) {
	shared.handled.Add(1)
	handlers := *programErrors.Load()
	if current() != nil {
		handlers = memberErrors
	}
	for _, handle := range handlers {
		handle(inCaller(ctx), err, msg, keysAndValues...)
	}
}

// pauseAfterError keeps a loop that fails at once from spinning.
func pauseAfterError(context.Context, error, string, ...any) { time.Sleep(time.Millisecond) }

// handlePanic is the only one of upstream's handlers of panics.
func handlePanic(ctx context.Context, reason any) {
	shared.handled.Add(1)
	if current() != nil {
		for _, handle := range upstreamPanics {
			handle(inCaller(ctx), reason)
		}
		panicked(reason)
		return
	}
	for _, handle := range *programPanics.Load() {
		handle(inCaller(ctx), reason)
	}
}

// inCaller makes a line of the log name the place of the error, not that of handleError.
func inCaller(ctx context.Context) context.Context {
	return klog.NewContext(ctx, klog.FromContext(ctx).WithCallDepth(1))
}
