package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"snowglobe.test/envtest/virtualtime"
)

// Run opens the source's cluster, runs the cases on it one after another, and closes
// it. It skips, with the reason, cases whose needs the cluster does not meet, and those
// left when the context is cancelled. The error says why cases could not run; failed
// cases are in the report (see Report.Err). reporter may be nil.
func Run(ctx context.Context, source Source, cases []Case, reporter Reporter) (Report, error) {
	return run(ctx, Report{Target: source.String()}, source, cases, reporter, func() error { return nil })
}

// Simulate is Run in virtual time. The source's cluster runs in a bubble with the cases,
// so it must not use sockets. If the context is cancelled, the running case still
// finishes, which takes next to no time. Durations in the report are virtual.
func Simulate(ctx context.Context, source Source, cases []Case, reporter Reporter) (Report, error) {
	report := Report{Target: source.String(), VirtualTime: true}
	var err error
	bubble := virtualtime.Bubble(func() error {
		// Virtual time would not pass while something waits for a channel from outside
		// the bubble, so the outer context is only polled.
		inside, cancel := context.WithCancel(context.Background())
		defer cancel()
		report, err = run(inside, report, source, cases, reporter, func() error { return context.Cause(ctx) })
		return nil
	})
	return report, errors.Join(err, bubble)
}

// run adds to the report. interrupted returns why no further case should begin, or nil.
func run(ctx context.Context, report Report, source Source, cases []Case, reporter Reporter, interrupted func() error) (Report, error) {
	if reporter == nil {
		reporter = Text{Out: io.Discard}
	}
	report.Start = time.Now()
	reporter.Begin(report.Target, len(cases))
	end := func(err error) (Report, error) {
		report.Took = time.Since(report.Start)
		reporter.End(report)
		if err != nil {
			err = fmt.Errorf("conformance: %w", err)
		}
		return report, err
	}
	cluster, err := source.Open(ctx)
	if err != nil {
		return end(err)
	}
	report.Cluster = cluster.Name
	var stopped error
	for _, c := range cases {
		if stopped == nil {
			stopped = errors.Join(context.Cause(ctx), interrupted())
		}
		result := Result{Case: c, State: Skipped, Start: time.Now()}
		if stopped != nil {
			result.Message = "not run: " + stopped.Error()
		} else {
			result = cluster.run(ctx, c)
		}
		report.Results = append(report.Results, result)
		reporter.Case(result)
	}
	return end(errors.Join(stopped, cluster.close(ctx)))
}

// failure is the panic value with which a failed assertion leaves the case.
type failure struct {
	message  string
	location string
}

func (c *Cluster) run(ctx context.Context, tested Case) (result Result) {
	result = Result{Case: tested, State: Passed, Start: time.Now()}
	if result.Message = tested.Unmet(c); result.Message != "" {
		result.State = Skipped
		return result
	}
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			result.State, result.Message, result.Location = Failed, reason.message, reason.location
		default:
			result.State = Failed
			result.Message = fmt.Sprintf("panic: %v\n%s", reason, debug.Stack())
		}
		result.Took = time.Since(result.Start)
		if cause := context.Cause(ctx); cause != nil && result.State == Failed {
			result.State, result.Message = Skipped, "interrupted: "+cause.Error()
		}
	}()
	tested.Do(ctx, c, func(message string, _ ...int) {
		panic(failure{message: message, location: location(tested)})
	})
	return result
}

// location returns the line of the case that is being executed, like
// "watch.go:42": the step that failed, even if the assertion is in a helper.
func location(tested Case) string {
	test := runtime.FuncForPC(reflect.ValueOf(tested.Test).Pointer()).Name()
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
