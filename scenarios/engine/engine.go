// Package engine owns how a script runs: from a line to its command, and from what the command
// returns to the outcome of the script. It has the commands that are about other commands and
// about the script itself, checks scripts before they run, and describes commands. It knows
// no command that has anything to do with a server.
package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/story"
)

// Options say how a script is run.
type Options struct {
	// RealTime is false in a bubble.
	RealTime bool
	// Verbose keeps the log of all phases, not only that of the one that failed.
	Verbose bool
	// Prompt is where "break" asks for commands, and Typed what is typed there; nil if there
	// is no user to ask.
	Prompt *Prompt
	Typed  *Keyboard
}

// Run is one run of a script, as its commands see it.
type Run struct {
	Script script.Script
	Story  *story.Story
	// Stdout and Stderr are what the current command prints.
	Stdout, Stderr bytes.Buffer

	opts Options
	// outer is the context of the run. It comes from outside the bubble, where nothing may wait
	// for it; its error is looked at between commands, and whenever something happens, instead.
	outer context.Context
	// cancel is that of the command that runs in a bubble, not that of one that wraps it.
	cancel   atomic.Pointer[context.CancelFunc]
	commands []Command
	shell    *shell
	log      transcript
	line     script.Line // the current one
	outcome  error       // of the command on it
	untold   []toldLine  // lines that are not in the story yet
	ended    bool        // a command has ended the script
	skipped  bool        // and this is why
	reason   string
}

// Outcome is how a script ended.
type Outcome struct {
	// Err is what failed, nil if nothing did.
	Err error
	// Skipped is whether the script has skipped itself, for Reason.
	Skipped bool
	Reason  string
	// Log has the commands and what they printed.
	Log string
}

// New begins the run of a script.
func New(ctx context.Context, s script.Script, opts Options) *Run {
	return &Run{Script: s, Story: story.New(), opts: opts, outer: ctx}
}

// Perform runs the script in a folder, which must be empty.
func (r *Run) Perform(folder string, commands []Command) Outcome {
	r.commands = commands
	err := r.perform(folder)
	if err != nil {
		fmt.Fprintln(&r.log, "FAIL:", err)
	}
	if !r.skipped {
		r.tell()
	}
	log := strings.ReplaceAll(r.log.end(r.opts.Verbose || err != nil), folder, "$WORK")
	return Outcome{Err: err, Skipped: r.skipped && err == nil, Reason: r.reason, Log: log}
}

func (r *Run) perform(folder string) error {
	shell, err := newShell(r, folder)
	if err != nil {
		return &FolderError{err}
	}
	r.shell = shell
	defer shell.close(&r.log)
	lines := r.Script.Lines()
	for i := 0; i < len(lines) && !r.ended; i++ {
		if text := script.Comment(lines[i:]); len(text) > 0 {
			r.untold = append(r.untold, toldLine{text: strings.Join(text, " ")})
			r.log.phase(lines[i:i+len(text)], r.opts.Verbose)
			i += len(text) - 1
			continue
		}
		if command, err := r.performLine(i+1, lines[i]); err != nil {
			return &Failure{Script: r.Script.File, Line: i + 1, Text: strings.TrimSpace(lines[i]), Command: command,
				Err: err, folder: folder}
		}
		lines = r.Script.Lines() // it may be another one now: see Branch
	}
	return nil
}

// performLine runs the command on a line, if there is one. It returns the name of what
// failed, unless the error says that.
func (r *Run) performLine(number int, text string) (command string, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	line, err := script.ParseLine(text)
	if err != nil || len(line.Words) == 0 {
		return "", err
	}
	holds, err := r.hold(line.Conditions)
	if err == nil && !holds {
		return "", nil
	}
	r.untold = append(r.untold, toldLine{line.Words, strings.TrimSpace(text)})
	if err != nil {
		return "", err
	}
	line.Number = number
	r.line, r.outcome = line, nil
	err = r.shell.run(strings.Replace(text, line.Words[0], r.Expand(line.Words[0]), 1), &r.log)
	if r.outcome != nil {
		err = r.outcome
	}
	if matches(line.Words[0]) {
		return "", err
	}
	return line.Words[0], err
}

// play runs a command, as the current line says.
func (r *Run) play(c Command, args []string) error {
	r.tell()
	r.Stdout.Reset()
	r.Stderr.Reset()
	if r.Interrupted() {
		return ErrInterrupted
	}
	err := c.invoke(r, args)
	switch {
	case r.Interrupted():
		return ErrInterrupted
	case !r.line.Negated:
		return err
	case err != nil:
		fmt.Fprintln(&r.Stderr, err)
	}
	return c.negate(err)
}

// toldLine is a line of the story: of a command, or without words a phase.
type toldLine struct {
	words []string
	text  string
}

// tell puts the lines so far into the story. It is called before a command runs, so that a
// script that skips itself at once has no story.
func (r *Run) tell() {
	for _, line := range r.untold {
		if len(line.words) == 0 {
			r.Story.Phase(line.text)
			continue
		}
		command, err := find(r.commands, line.words[0])
		if err == nil && command.Tells {
			continue
		}
		if err == nil && command.Begins != nil && command.Begins(line.words[1:]) {
			r.Story.ExpectServer()
		}
		r.Story.Command(line.text)
	}
	r.untold = nil
}

// context is the context of a command. In a bubble Observe ends it when outer has ended.
func (r *Run) context(c Command) (context.Context, context.CancelFunc) {
	parent := context.Background()
	if r.opts.RealTime {
		parent = r.outer
	}
	ctx, end := bounded(parent, c)
	if r.opts.RealTime {
		return ctx, end
	}
	wrapping := r.cancel.Swap(&end)
	return ctx, func() {
		end()
		r.cancel.Store(wrapping)
	}
}

// bounded is a context for as long as a command may take.
func bounded(parent context.Context, c Command) (context.Context, context.CancelFunc) {
	if c.Unbounded {
		return context.WithCancel(parent)
	}
	return context.WithTimeoutCause(parent, Patience, fmt.Errorf("not within %s", Patience))
}

// Observe takes an event of a server into the story. In a bubble it also ends the command that runs
// if the script is to end: "start" and "advance" may take long, on the wall too, but things happen
// all the time.
func (r *Run) Observe(rec trace.Record) {
	r.Story.Observe(rec)
	if cancel := r.cancel.Load(); cancel != nil && r.Interrupted() {
		(*cancel)()
	}
}

// Background is the context of what outlives the command that begins it.
func (r *Run) Background() context.Context { return context.WithoutCancel(r.outer) }

// Interrupted reports whether the script is to end.
func (r *Run) Interrupted() bool { return r.outer.Err() != nil }

// RealTime reports whether the script runs in real time.
func (r *Run) RealTime() bool { return r.opts.RealTime }

// Here is the place of the command that runs.
func (r *Run) Here() string { return r.Script.Place(r.line.Number) }

// ReadFile reads a file of the script, or what the last command printed.
func (r *Run) ReadFile(name string) (string, error) {
	switch name {
	case stdoutName:
		return r.shell.state.Stdout(), nil
	case stderrName:
		return r.shell.state.Stderr(), nil
	}
	text, err := os.ReadFile(r.Path(name))
	return string(text), err
}

// Path is where a file of the script is.
func (r *Run) Path(name string) string { return r.shell.state.Path(name) }

// Getenv returns a variable of the script, "" if it is not set.
func (r *Run) Getenv(name string) string {
	value, _ := r.shell.state.LookupEnv(name)
	return value
}

// Setenv sets a variable of the script.
func (r *Run) Setenv(name, value string) {
	_ = r.shell.state.Setenv(name, value) // it never fails
}

// Expand expands $VARIABLE and ${VARIABLE} in a text.
func (r *Run) Expand(text string) string { return os.Expand(text, r.Getenv) }

// wrapped runs the command that another one wraps.
func (r *Run) wrapped(words []string) error {
	negated := words[0] == script.Negation && len(words) > 1
	if negated {
		words = words[1:]
	}
	c, err := find(r.commands, words[0])
	if err != nil {
		return &UsageError{err, "COMMAND [ARGUMENT]..."}
	}
	if err = c.invoke(r, words[1:]); negated {
		return c.negate(err)
	}
	return err
}

// isMisuse reports whether an error is a mistake in the script.
func isMisuse(err error) bool {
	_, misuse := errors.AsType[*UsageError](err)
	return misuse
}
