package explore

import (
	"context"
	"time"

	"snowglobe.test/envtest/fault"
)

// Runner runs scripts. Its method may be called from several goroutines at once.
type Runner interface {
	// Run runs the script of a task and tells what came of it. An error means that the
	// script could not be run, not that it failed.
	Run(ctx context.Context, task Task) (Outcome, error)
}

// Task is one run of a script.
type Task struct {
	// Name is the script's, and Text all of it: commands and files.
	Name string `json:"name"`
	Text string `json:"text"`
	// Points asks for the operations of the run, in Outcome.Points.
	Points bool `json:"points,omitempty"`
}

// Outcome is what came of a task.
type Outcome struct {
	// Failure is why the script failed, nil if it did not.
	Failure *Failure `json:"failure,omitempty"`
	// Unknown is what the checkers could not decide; "" for nothing.
	Unknown string `json:"unknown,omitempty"`
	// Skipped is why the script skipped itself; "" if it did not.
	Skipped string `json:"skipped,omitempty"`
	// Interleavings are those of events that the run has shown (see Interleavings).
	Interleavings []uint64 `json:"interleavings,omitempty"`
	// Acted are the operations that rules have acted on, for each rule that has: the
	// occurrences are counted for the rule.
	Acted map[string]int `json:"acted,omitempty"`
	// ActedAt are the points of these operations, for each rule.
	ActedAt map[string][]string `json:"actedAt,omitempty"`
	// Points are there if the task asked for them.
	Points []Point `json:"points,omitempty"`
	// Spent is where the time went.
	Spent Spent `json:"spent"`
}

// Operations is how many operations rules have acted on.
func (o Outcome) Operations() int {
	count := 0
	for _, n := range o.Acted {
		count += n
	}
	return count
}

// Spent is where time on the wall went. Script is what the other parts leave of it.
type Spent struct {
	Boots    int           `json:"boots"`
	Process  time.Duration `json:"processNanos"` // start and end of the process
	Boot     time.Duration `json:"bootNanos"`
	Script   time.Duration `json:"scriptNanos"`
	Shutdown time.Duration `json:"shutdownNanos"`
	Check    time.Duration `json:"checkNanos"`
}

// Add adds what another run has spent.
func (s *Spent) Add(other Spent) {
	s.Boots += other.Boots
	s.Process += other.Process
	s.Boot += other.Boot
	s.Script += other.Script
	s.Shutdown += other.Shutdown
	s.Check += other.Check
}

// Total is all of it.
func (s Spent) Total() time.Duration { return s.Process + s.Boot + s.Script + s.Shutdown + s.Check }

// Point is what identifies an operation that a run had, without its occurrence, and
// how often the run had it.
type Point struct {
	fault.Operation
	Count int `json:"count"`
}

// Kind is a kind of failure.
type Kind string

// The kinds of failures.
const (
	ScriptFailed Kind = "script"     // a command failed
	Crashed      Kind = "crash"      // a server ended by itself
	Broken       Kind = "check"      // a checker found a promise broken
	StoodStill   Kind = "standstill" // virtual time did not move
	Died         Kind = "process"    // the process of the run ended, or did not end in time
)

// Failure is why a script failed.
type Failure struct {
	Kind Kind `json:"kind"`
	// Cause is what failures of one cause have in common: the command, the check or the
	// place in the code. It has none of the words of errors, which may say the same of
	// different causes, and say one cause in different ways.
	Cause string `json:"cause"`
	// Text is the error, in full.
	Text string `json:"text"`
}

// Same reports whether two failures are of one cause, as far as that can be told.
func (f *Failure) Same(other *Failure) bool {
	return f != nil && other != nil && f.Kind == other.Kind && f.Cause == other.Cause
}
