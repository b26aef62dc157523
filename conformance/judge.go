package conformance

import (
	"context"
	"path"
	"reflect"
	"runtime"
	"strconv"

	"k8s.io/client-go/transport"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/transcript"
)

// Judge runs a case on a cluster that meets its needs, and cleans up after it. The first
// failed assertion calls fail, which must not return, with what the case has found and what
// the recorder has of its requests.
func Judge(ctx context.Context, cluster *suite.Cluster, tested suite.Case, recorder *transcript.Recorder, fail func(found Finding, callerSkip int)) {
	recorded := *cluster
	recorded.Wrap = transport.Wrappers(cluster.Wrap, recorder.Wrap)
	tested.Do(ctx, &recorded, func(message string, callerSkip ...int) {
		found := Finding{Message: message, Exchanges: recorder.Exchanges()}
		found.Location, found.Step = step(tested)
		skip := 1
		for _, frames := range callerSkip {
			skip += frames
		}
		fail(found, skip)
	})
}

// step returns the line of the case that is being executed, like "watch.go:42", and the
// statement there: the step that failed, even if the assertion is in a helper.
func step(tested suite.Case) (location, statement string) {
	test := runtime.FuncForPC(reflect.ValueOf(tested.Test).Pointer()).Name()
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if frame.Function == test {
			file := path.Base(frame.File)
			return file + ":" + strconv.Itoa(frame.Line), statementAt(path.Join(string(tested.Area), file), frame.Line)
		}
		if !more {
			return "", ""
		}
	}
}
