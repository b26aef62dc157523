package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"snowglobe.test/envtest/virtualtime"
)

// Run opens the source's cluster, puts it to the cases one after another, and
// closes it. Cases whose needs the cluster does not meet are skipped, with the
// reason, as are those that a cancelled context leaves no time for. The error
// says what kept cases from being run; that a case failed is in the report (see
// Report.Err). A nil reporter is told nothing.
func Run(ctx context.Context, source Source, cases []Case, reporter Reporter) (Report, error) {
	return run(ctx, Report{Target: source.String()}, source, cases, orSilent(reporter), func() error { return nil })
}

// Simulate is Run in virtual time: the source's cluster lives in a bubble with
// the cases, so it must have no sockets. Cancelling the context lets the running
// case end, which takes no time. Durations in the report are virtual.
func Simulate(ctx context.Context, source Source, cases []Case, reporter Reporter) (Report, error) {
	report := Report{Target: source.String(), VirtualTime: true}
	var err error
	bubble := virtualtime.Bubble(func() error {
		// Waiting for a channel made outside would keep time from passing, so the
		// outer context is only looked at.
		inside, cancel := context.WithCancel(context.Background())
		defer cancel()
		report, err = run(inside, report, source, cases, orSilent(reporter), func() error { return context.Cause(ctx) })
		return nil
	})
	return report, errors.Join(err, bubble)
}

// run adds to the report. interrupted says why no further case is to be begun.
func run(ctx context.Context, report Report, source Source, cases []Case, reporter Reporter, interrupted func() error) (Report, error) {
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

// failure is what an assertion panics with to leave the case.
type failure struct {
	message  string
	location string
}

// run puts the cluster to one case.
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

// location is the line of a case's test that is being executed, as
// "watch.go:42". Assertions in helpers say what failed; this says for what.
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
