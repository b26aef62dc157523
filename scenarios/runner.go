package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

// Options say how scripts are run. The zero value runs them in virtual time.
type Options struct {
	// RealTime runs a script by the clock on the wall. Scripts that need hours
	// to pass skip themselves then.
	RealTime bool
	// Verbose keeps the output of every command in Result.Log, not only that of
	// the phase that failed.
	Verbose bool
	// Seed decides in which order operations take their turns in virtual time,
	// and what rules leave to chance. Nil leaves the order to the machine.
	Seed *uint64
	// Faults are rules that every server of the script starts with. A script
	// fails in which one that is not optional never fired.
	Faults fault.Plan
	// FullTrace puts into the records what clients are told, and every change of
	// the store; a canonical trace needs it.
	FullTrace bool

	// tamper takes out what a script shows; only tests of the scripts set it.
	tamper tamper
}

// Status is how a script ended.
type Status string

// The ways a script ends.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is how one run of a script went.
type Result struct {
	Script Script
	Status Status
	// Err says what failed, and where: "FILE:LINE: what". It is nil unless the
	// script failed.
	Err error
	// Reason is why the script was skipped.
	Reason string
	// Log is the script engine's transcript.
	Log string
	// ServerLog is what the last API server of the script logged.
	ServerLog string
	// Records are all that happened, in order.
	Records []trace.Record
	// Scripted is how long the run took in the clock of the script, and Wall
	// how long it took on the wall.
	Scripted, Wall time.Duration
}

// errInterrupted is how a script ends whose context has ended.
var errInterrupted = errors.New("interrupted")

// Run runs the script in a folder of its own, which is gone when Run returns, as
// is everything the script has started. A context that ends stops the script
// after the command it is at.
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
	// The engine reads scripts from the disk, wherever this one came from.
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
