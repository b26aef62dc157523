package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/scenarios/checkers"
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
	// Faults are rules that every server of the script starts with. The script
	// fails if a rule that is not optional never fires.
	Faults fault.Plan
	// FullTrace also records what clients see and what the store writes, for canonical traces.
	FullTrace bool
	// Prompt is where the command "break" asks for commands; nil if there is nobody to ask.
	Prompt *Prompt
	// Servers are additional options for every server of the script, and Store, if not
	// nil, wraps its store: with these a test can plant a bug.
	Servers []envtest.Option
	Store   func(storage.Backend) storage.Backend
}

// Status is how a script ended.
type Status string

// The ways a script ends.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is the outcome of one run of a script.
type Result struct {
	Script Script
	Status Status
	// Err is what failed, and where: "FILE:LINE: what"; nil if the script did not fail.
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
	// Report is what the last "check" in the script found; nil if there was none.
	Report *checkers.Report
	// Spent is where the wall time went.
	Spent Spent
	// Scripted is how long the run took by the script's clock, and Wall in real time.
	Scripted, Wall time.Duration
}

// errInterrupted is the error of a script whose context has ended.
var errInterrupted = errors.New("interrupted")

// Run runs the script in a temporary folder. When it returns, the folder and everything that
// the script started are gone. If ctx ends, the script stops after its current command.
func (s Script) Run(ctx context.Context, opts Options) Result {
	began := time.Now()
	result := s.run(ctx, opts)
	result.Script, result.Wall = s, time.Since(began)
	return result
}

func (s Script) run(ctx context.Context, opts Options) (result Result) {
	if err := s.validate(); err != nil {
		return failure(err)
	}
	folder, err := os.MkdirTemp("", "snowglobe-script-")
	if err != nil {
		return failure(fmt.Errorf("%s: folder of the run: %w", s.File, err))
	}
	defer func() {
		if err := os.RemoveAll(folder); err != nil && result.Err == nil {
			result = failure(fmt.Errorf("%s: folder of the run: %w", s.File, err))
		}
	}()
	// The engine reads scripts from disk only, and this one may be embedded.
	file := filepath.Join(folder, s.Name+extension)
	if err := os.WriteFile(file, s.text, 0o600); err != nil {
		return failure(fmt.Errorf("%s: folder of the run: %w", s.File, err))
	}
	perform := func() error {
		result = newSession(ctx, s, opts).perform(file)
		return nil
	}
	if opts.RealTime {
		_ = perform()
	} else if err := virtualtime.Bubble(perform); err != nil {
		result.Status, result.Err = Failed, errors.Join(result.Err, fmt.Errorf("%s: %w", s.File, err))
	}
	result.Log = strings.ReplaceAll(result.Log, file, s.File)
	return result
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
	for _, script := range scripts {
		t.Run(script.Name, func(t *testing.T) {
			if !script.alone() {
				t.Parallel()
			}
			result := script.Run(t.Context(), Options{Verbose: testing.Verbose()})
			if result.Status == Failed || testing.Verbose() {
				t.Log(transcript(result))
			}
			switch result.Status {
			case Failed:
				t.Error(result.Err)
			case Skipped:
				t.Skip(result.Reason)
			}
		})
	}
}

// alone reports whether no other script can run beside this one: its servers have other
// feature gates than the default, or no housekeeping, both of which are the process's, or
// it stops at a prompt.
func (s Script) alone() bool {
	return slices.ContainsFunc([]string{"--feature-gates", "--emulat", "--without-housekeeping", "\nbreak"}, func(mark string) bool {
		return bytes.Contains(s.text, []byte(mark))
	})
}

// transcript returns the story of a run and the log of its commands.
func transcript(result Result) string {
	var text strings.Builder
	_ = WriteStory(&text, result.Records, TextOptions{}) // a Builder never fails
	return "\n" + text.String() + "\n" + result.Log
}
