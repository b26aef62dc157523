// Package worker runs scripts for explore, each in a new process. The program that is
// such a process calls Serve when Requested says so, before anything else.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/redact"
	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/checkers"
	"snowglobe.test/scenarios/commands/checks"
	"snowglobe.test/scenarios/commands/servers"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/explore"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/story"
)

// variable of the environment asks a program to serve a task: that on its standard input if it is 1, or
// else those in the folder that it names, each in a copy of the process (see Copies).
const variable = "SNOWGLOBE_EXPLORE_TASK"

// Requested reports whether this process is to serve a task.
func Requested() bool { return os.Getenv(variable) != "" }

// answer is what Serve writes: the outcome, and how long the run took within.
type answer struct {
	explore.Outcome
	Run time.Duration `json:"runNanos"`
	// NotRun is why the script could not be run; "" if it was.
	NotRun string `json:"notRun,omitempty"`
}

// Serve reads a task, runs it, and writes its outcome. The options are those of the
// run; a test plants its bugs with them.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts scenarios.Options) error {
	if folder := os.Getenv(variable); folder != "1" {
		return serveCopies(ctx, folder, opts)
	}
	var task explore.Task
	if err := json.NewDecoder(in).Decode(&task); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	result := scenarios.Run(ctx, scriptOf(task), opts)
	return tell(out, task, result)
}

func scriptOf(task explore.Task) script.Script {
	return script.Parse(task.Name+script.Extension, []byte(task.Text))
}

// tell writes what came of a task.
func tell(out io.Writer, task explore.Task, result scenarios.Result) error {
	a := answer{Outcome: outcomeOf(task, result), Run: result.Wall}
	if result.Status == scenarios.NotRun {
		a.NotRun = result.Err.Error()
	}
	if err := json.NewEncoder(out).Encode(a); err != nil {
		return fmt.Errorf("outcome: %w", err)
	}
	return nil
}

// outcomeOf returns what explore wants to know about a run.
func outcomeOf(task explore.Task, result scenarios.Result) explore.Outcome {
	spent, varied := result.Spent, sinceReseed(result.Records)
	outcome := explore.Outcome{
		Failure:       FailureOf(result.Err),
		Skipped:       result.Reason,
		Interleavings: explore.Interleavings(varied),
		Acted:         explore.Acted(result.Records),
		ActedAt:       explore.ActedAt(result.Records),
		Spent: explore.Spent{
			Boots: spent.Boots, Boot: spent.Boot, Shutdown: spent.Shutdown, Check: spent.Check,
			Script: max(0, result.Wall-spent.Boot-spent.Shutdown-spent.Check),
		},
	}
	if broken, ok := errors.AsType[*checks.BrokenError](result.Err); ok && broken.Report.Verdict() == checkers.Unknown {
		outcome.Unknown, outcome.Failure = broken.Error(), nil // what can't be decided is no failure
	}
	if task.Points {
		outcome.Points = explore.Points(varied)
	}
	return outcome
}

// sinceReseed returns the records since the command "reseed", or all of them.
func sinceReseed(records []trace.Record) []trace.Record {
	at := slices.IndexFunc(records, func(rec trace.Record) bool {
		return story.IsCommand(rec, script.ReseedCommand)
	})
	return records[max(0, at):]
}

// FailureOf returns why a script failed, nil if it did not.
func FailureOf(err error) *explore.Failure {
	if err == nil {
		return nil
	}
	failure := &explore.Failure{Kind: explore.ScriptFailed, Cause: commandOf(err), Text: err.Error()}
	var broken *checks.BrokenError
	var crash *process.CrashError
	switch {
	case errors.As(err, &broken):
		failure.Kind = explore.Broken
		failure.Cause, failure.Text = firstBroken(broken.Report)
	case errors.Is(err, virtualtime.ErrStandstill):
		failure.Kind = explore.StoodStill
	case errors.As(err, &crash):
		failure.Kind, failure.Cause, failure.Text = explore.Crashed, "", redact.Text("the API server crashed: "+crash.Error())
		if site, ok := errors.AsType[*process.SiteError](crash); ok {
			failure.Cause = site.Site
		}
	}
	return failure
}

// commandOf is the command that failed, with the reason that an API server gave, or the
// rule that never fired.
func commandOf(err error) string {
	var cause []string
	if at, ok := errors.AsType[*engine.Failure](err); ok {
		cause = append(cause, at.Text)
	}
	if unfired, ok := errors.AsType[*servers.UnfiredError](err); ok {
		cause = append(cause, "unfired", unfired.Rule.String())
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		cause = append(cause, string(reason))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		cause = append(cause, "late")
	}
	return strings.Join(cause, " ")
}

// firstBroken is the first check that found a promise broken, and says what is.
func firstBroken(report checkers.Report) (check, text string) {
	for _, f := range report.Findings() {
		if f.Verdict == checkers.Broken {
			return f.Check, f.Check + ": " + f.String()
		}
	}
	return "", report.String()
}

// Runner returns what runs tasks in the program of an import path in sim mode, or in this one if it is in
// sim mode already, and what to call at the end. Progress is told about a build that takes long.
func Runner(ctx context.Context, folder, importPath string, progress io.Writer) (explore.Runner, func() error, error) {
	program, err := os.Executable()
	copies := sim.CanCopy()
	if !sim.Enabled() {
		program, err = sim.Program(ctx, folder, importPath, progress)
		copies = sim.ProgramCopies
	}
	process := Process{Program: program}
	if err != nil || !copies {
		return process, func() error { return nil }, err
	}
	c, err := NewCopies(process)
	if err != nil {
		return nil, nil, err
	}
	return c, c.Close, nil
}
