package engine

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"snowglobe.test/conformance/transcript"
)

// Do runs a case on a target that meets its needs, and cleans up after it. The first failed
// assertion calls fail, which must not return, with what the case has found and what the recorder
// has of its requests.
func Do[T any](ctx context.Context, target Target[T], c Case[T], recorder *transcript.Recorder,
	fail func(found Finding, callerSkip int)) {
	target.Do(ctx, c, recorder, func(message string, callerSkip ...int) {
		found := Finding{Message: message, Exchanges: recorder.Exchanges()}
		found.Location, found.Step = c.step()
		skip := 1
		for _, frames := range callerSkip {
			skip += frames
		}
		fail(found, skip)
	})
}

// Within runs the case's test, for a limited time, and then cleans up, with a context that outlives
// the run. It is for a target's Do. If the test failed, an error of cleanUp is not reported.
func (c Case[T]) Within(ctx context.Context, limit time.Duration, t T, cleanUp func(context.Context) error,
	fail func(message string, callerSkip ...int)) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the case did not end within %s", limit))
	defer cancel()
	passed := false
	defer func() {
		if err := cleanUp(context.WithoutCancel(ctx)); err != nil && passed {
			fail("clean up: " + err.Error())
		}
	}()
	c.Test(ctx, t)
	passed = true
}

// failure is the panic value with which a failed assertion leaves the case, and skipped that of
// Skip.
type (
	failure struct{ found Finding }
	skipped struct{ reason string }
)

// Skip ends the case that calls it as not applicable.
func Skip(format string, args ...any) { panic(skipped{fmt.Sprintf(format, args...)}) }

// Judge runs a case unless the target does not meet its needs, and returns what came of it.
func Judge[T any](ctx context.Context, target Target[T], c Case[T]) (result Result) {
	result = Result{Case: c.Info(), State: Passed, Start: time.Now()}
	if result.Message = target.Unmet(result.Case); result.Message != "" {
		result.State = NotApplicable
		return result
	}
	recorder := transcript.NewRecorder()
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			result.State, result.Finding = Failed, reason.found
		case skipped:
			result.State, result.Message = NotApplicable, reason.reason
		default:
			result.State = Failed
			result.Message = fmt.Sprintf("panic: %v\n%s", reason, debug.Stack())
			result.Exchanges = recorder.Exchanges()
		}
		result.Took = time.Since(result.Start)
		if cause := context.Cause(ctx); cause != nil && result.State == Failed {
			result.State, result.Finding = NotRun, Finding{Message: "interrupted: " + cause.Error()}
		}
	}()
	Do(ctx, target, c, recorder, func(found Finding, _ int) { panic(failure{found}) })
	return result
}

// step returns the line of the case that is being executed, like "watch.go:42", and the
// statement there: the step that failed, even if the assertion is in a helper.
func (c Case[T]) step() (location, statement string) {
	test := runtime.FuncForPC(reflect.ValueOf(c.Test).Pointer()).Name()
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if frame.Function == test {
			file := path.Base(frame.File)
			return file + ":" + strconv.Itoa(frame.Line), statementAt(c.Sources, file, frame.Line)
		}
		if !more {
			return "", ""
		}
	}
}

// statementAt is the innermost statement at a line of a file, on one line; empty if there is none.
func statementAt(sources fs.FS, file string, line int) string {
	if sources == nil {
		return ""
	}
	text, err := fs.ReadFile(sources, file)
	if err != nil {
		return ""
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
	if err != nil {
		return ""
	}
	var innermost ast.Stmt
	ast.Inspect(parsed, func(node ast.Node) bool {
		if node == nil || files.Position(node.Pos()).Line > line || files.Position(node.End()).Line < line {
			return false
		}
		if statement, ok := node.(ast.Stmt); ok {
			if _, block := node.(*ast.BlockStmt); !block {
				innermost = statement
			}
		}
		return true
	})
	if innermost == nil {
		return ""
	}
	from, to := files.Position(innermost.Pos()).Offset, files.Position(innermost.End()).Offset
	return strings.Join(strings.Fields(string(text[from:to])), " ")
}
