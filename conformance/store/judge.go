package store

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Outcome is how one case ended.
type Outcome struct {
	// Broken says why the promise is broken, Skipped why it could not be judged. Both are
	// empty if it was kept.
	Broken, Skipped string
	// Location is the line of the case that failed, as "watch.go:42".
	Location string
	Took     time.Duration
}

// caseTimeout bounds one case.
const caseTimeout = time.Minute

// broken and skipped are the panic values with which a case is left.
type (
	broken  struct{ message, location string }
	skipped struct{ reason string }
)

// Judge runs one case, and removes what it wrote.
func (s *Store) Judge(ctx context.Context, c Case) (o Outcome) {
	if c.Compacts && s.cfg.KeepHistory {
		return Outcome{Skipped: "it would compact the history"}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, caseTimeout, fmt.Errorf("the case did not end within %s", caseTimeout))
	defer cancel()
	start := time.Now()
	t := newTarget(s, c, func(message string, _ ...int) { panic(broken{message, location(c)}) })
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case broken:
			o.Broken, o.Location = reason.message, reason.location
		case skipped:
			o.Skipped = reason.reason
		default:
			o.Broken = fmt.Sprintf("panic: %v\n%s", reason, debug.Stack())
		}
		cancel() // for what the case has left running
		if err := t.cleanUp(ctx); err != nil && o == (Outcome{}) {
			o.Broken = "remove what the case wrote: " + err.Error()
		}
		o.Took = time.Since(start)
	}()
	c.Test(ctx, t)
	return o
}

// location returns the line of the case that is being executed: the step that failed, even
// if the assertion is in a helper.
func location(c Case) string {
	test := runtime.FuncForPC(reflect.ValueOf(c.Test).Pointer()).Name()
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if frame.Function == test {
			return frame.File[strings.LastIndexByte(frame.File, '/')+1:] + ":" + strconv.Itoa(frame.Line)
		}
		if !more {
			return ""
		}
	}
}
