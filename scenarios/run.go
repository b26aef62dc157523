package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/diskerr"
	"snowglobe.test/internal/redact"
	"snowglobe.test/internal/tempdir"
	"snowglobe.test/scenarios/commands/servers"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/story"
)

// Options say how to run scripts. The zero value runs them in virtual time.
type Options struct {
	// RealTime runs scripts in real time; those that need hours skip themselves.
	RealTime bool
	// Verbose keeps all output in Result.Log, not only that of the phase that failed.
	Verbose bool
	// Seed decides the order in which operations take turns in virtual time, and
	// every random choice of a rule. Nil leaves the order to the Go scheduler.
	Seed *uint64
	// Search is how a seed chooses among interleavings in sim mode, in place of what the script says; zero leaves
	// it to that.
	Search sim.Search
	// Faults are rules that every server of the script starts with. The script
	// fails if a rule that is not optional never fires.
	Faults fault.Plan
	// FullTrace also records what clients see and what the store writes, for canonical traces.
	FullTrace bool
	// Prompt is where the command "break" asks for commands; nil if there is no user to ask.
	Prompt *engine.Prompt
	// Servers are additional options for every server of the script, and Store, if not
	// nil, wraps its store: with these a test can plant a bug.
	Servers []envtest.Option
	Store   func(storage.Backend) storage.Backend
	// Branch, if not nil, is called where the script has "reseed", and may return many times, each time in
	// another process: the run goes on there with the script that it returns, whose commands until then are
	// the same. Where it returns false, the run ends.
	Branch func() (script.Script, bool)
}

// Status is how a script ended.
type Status string

// The ways a script ends.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
	// NotRun is a script that could not be judged, as there was no folder for its run.
	NotRun Status = "not run"
)

// Result is the outcome of one run of a script.
type Result struct {
	Script script.Script
	Status Status
	// Err is what failed, and where: "FILE:LINE: what", or why the script was not run; nil if
	// it did not fail.
	Err error
	// Line is the line of the script at which it failed; 0 if it did not, or not at a line.
	Line int
	// Reason is why the script was skipped.
	Reason string
	// Log is the script engine's transcript.
	Log string
	// ServerLog is what the last API server of the script logged.
	ServerLog string
	// Records are everything that happened, in order.
	Records []trace.Record
	// Spent is where the wall time went.
	Spent Spent
	// Scripted is how long the run took by the script's clock, and Wall in real time.
	Scripted, Wall time.Duration
}

// Run runs a script in a temporary folder. When it returns, the folder and everything that
// the script started are gone. If ctx ends, the script stops after its current command.
func Run(ctx context.Context, s script.Script, opts Options) Result {
	began := time.Now()
	result := run(ctx, s, opts)
	result.Script, result.Wall = s, time.Since(began)
	return result
}

func run(ctx context.Context, s script.Script, opts Options) (result Result) {
	if err := Validate(s); err != nil {
		return failure(err)
	}
	if left := LeftOut(s); len(left) > 0 {
		return Result{Status: Skipped, Reason: "it needs " + strings.Join(left, " and ") + ": run it by name, and a build that has them is made"}
	}
	folder, err := tempdir.Make("script")
	if err != nil {
		return notRun(s, err)
	}
	defer func() {
		if err := folder.Remove(); err != nil && result.Err == nil {
			result = failure(fmt.Errorf("%s: folder of the run: %w", s.File, err))
		}
	}()
	typed := engine.OpenKeyboard(ctx, opts.Prompt)
	defer typed.Close()
	inside := func() error {
		if begin, ok := s.Clock(); ok && !opts.RealTime {
			if err := virtualtime.SetClock(begin); err != nil {
				return err
			}
		}
		process.Steady(func() { result = perform(ctx, s, opts, typed, folder.Path()) })
		return nil
	}
	if opts.RealTime {
		_ = inside()
	} else if err := virtualtime.Bubble(inside); err != nil {
		result.Status, result.Err = Failed, errors.Join(result.Err, fmt.Errorf("%s: %w", s.File, err))
	}
	return result
}

// perform runs the script in a folder and then releases everything it used.
func perform(ctx context.Context, s script.Script, opts Options, typed *engine.Keyboard, folder string) Result {
	run := engine.New(ctx, s, engine.Options{RealTime: opts.RealTime, Verbose: opts.Verbose, Prompt: opts.Prompt, Typed: typed})
	groups := newCommandGroups(run, opts)
	outcome := run.Perform(folder, groups.commands())
	err := outcome.Err
	if closeErr := groups.close(); err == nil && closeErr != nil {
		err = fmt.Errorf("%s: after the last command: %w", s.File, closeErr)
	}
	if err == nil && !outcome.Skipped {
		err = groups.servers.Unfired()
	}
	result := Result{
		Status: Passed, Err: redact.Error(err), Log: redact.Text(outcome.Log), ServerLog: groups.servers.Log(),
		Records: run.Story.Records(), Scripted: time.Since(run.Story.Began()), Spent: Spent{groups.servers.Spent(), groups.checks.Spent},
	}
	var folderErr *engine.FolderError
	switch {
	case errors.As(err, &folderErr):
		return notRun(s, folderErr.Err)
	case err != nil:
		result.Status = Failed
		if at, ok := errors.AsType[*engine.Failure](err); ok {
			result.Line = at.Line
		}
	case outcome.Skipped:
		result.Status, result.Reason = Skipped, outcome.Reason
	}
	return result
}

// Spent is where the wall time of a run went; the rest is the script's own.
type Spent struct {
	servers.Spent
	// Check is how long checking histories took.
	Check time.Duration
}

// notRun is the outcome of a script that has no folder to run in.
func notRun(s script.Script, err error) Result {
	return Result{Status: NotRun, Err: fmt.Errorf("%s: %w", s.File, &engine.FolderError{Err: diskerr.OrSame(os.TempDir(), err)})}
}

func failure(err error) Result { return Result{Status: Failed, Err: err} }

// Test runs each script as a subtest in virtual time. Names are as for Find.
// The story of a script is shown if it fails, or with -v. The subtests run in parallel,
// except for scripts that set feature gates, because those belong to the whole process.
func Test(t *testing.T, names ...string) {
	t.Helper()
	scripts, err := Find(names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range scripts {
		t.Run(one.Name, func(t *testing.T) {
			if !alone(one) {
				t.Parallel()
			}
			result := Run(t.Context(), one, Options{Verbose: testing.Verbose()})
			if result.Status == Failed || testing.Verbose() {
				t.Log(transcript(result))
			}
			switch result.Status {
			case Failed, NotRun:
				t.Error(result.Err)
			case Skipped:
				t.Skip(result.Reason)
			}
		})
	}
}

// transcript returns the story of a run and the log of its commands.
func transcript(result Result) string {
	var text strings.Builder
	_ = story.Write(&text, result.Records, story.TextOptions{}) // a Builder never fails
	return "\n" + text.String() + "\n" + result.Log
}
