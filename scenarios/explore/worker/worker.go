// Package worker runs scripts for explore, each in a new process. The program that is
// such a process calls Serve when Requested says so, before anything else.
package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/checkers"
	"snowglobe.test/scenarios/explore"
)

// variable of the environment asks a program to serve a task.
const variable = "SNOWGLOBE_EXPLORE_TASK"

// Requested reports whether this process is to serve a task.
func Requested() bool { return os.Getenv(variable) != "" }

// answer is what Serve writes: the outcome, and how long the run took within.
type answer struct {
	explore.Outcome
	Run time.Duration `json:"runNanos"`
}

// Serve reads a task, runs it, and writes its outcome. The options are those of the
// run; a test plants its bugs with them.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts scenarios.Options) error {
	var task explore.Task
	if err := json.NewDecoder(in).Decode(&task); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	result := scenarios.Parse(task.Name+".txtar", []byte(task.Text)).Run(ctx, opts)
	if err := json.NewEncoder(out).Encode(answer{outcomeOf(task, result), result.Wall}); err != nil {
		return fmt.Errorf("outcome: %w", err)
	}
	return nil
}

// outcomeOf returns what explore wants to know about a run.
func outcomeOf(task explore.Task, result scenarios.Result) explore.Outcome {
	spent := result.Spent
	outcome := explore.Outcome{
		Failure: failureOf(result),
		Skipped: result.Reason,
		Orders:  explore.Orders(result.Records),
		Acted:   explore.Acted(result.Records),
		ActedAt: explore.ActedAt(result.Records),
		Spent: explore.Spent{
			Boots: spent.Boots, Boot: spent.Boot, Shutdown: spent.Shutdown, Check: spent.Check,
			Script: max(0, result.Wall-spent.Boot-spent.Shutdown-spent.Check),
		},
	}
	if result.Report != nil && result.Report.Verdict() == checkers.Unknown {
		outcome.Unknown = result.Report.String()
	}
	if outcome.Unknown != "" && outcome.Failure != nil && outcome.Failure.Kind == explore.Broken {
		outcome.Failure = nil // what can't be decided is no failure
	}
	if task.Points {
		outcome.Points = explore.Points(result.Records)
	}
	return outcome
}

// failureOf returns why a script failed, nil if it did not.
func failureOf(result scenarios.Result) *explore.Failure {
	if result.Status != scenarios.Failed {
		return nil
	}
	text := result.Err.Error()
	switch {
	case result.Report != nil && result.Report.Verdict() != checkers.Holds:
		return explore.NewFailure(explore.Broken, findings(*result.Report))
	case strings.Contains(text, "virtual time stands still"):
		return explore.NewFailure(explore.StoodStill, text)
	}
	for _, sign := range []string{"the API server crashed", "post-start hook \""} {
		if at := strings.Index(text, sign); at >= 0 {
			return explore.NewFailure(explore.Crashed, text[at:])
		}
	}
	return explore.NewFailure(explore.ScriptFailed, text)
}

// findings says what is broken, the first promise before all else.
func findings(report checkers.Report) string {
	for _, f := range report.Findings() {
		if f.Verdict == checkers.Broken {
			return f.Check + ": " + f.String()
		}
	}
	return report.String()
}

// Sim is the program of an import path in sim mode, or this one if it is in sim mode
// already. Progress is told about a build that takes long.
func Sim(ctx context.Context, folder, importPath string, progress io.Writer) (string, error) {
	if sim.Enabled() {
		return os.Executable()
	}
	return sim.Program(ctx, folder, importPath, progress)
}
