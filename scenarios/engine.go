package scenarios

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// perform runs the script in the file and then releases everything it used.
func (s *session) perform(file string) Result {
	t := &scriptT{verbose: s.opts.Verbose}
	t.attempt(func(testscript.T) {
		testscript.RunT(t, testscript.Params{
			Files:     []string{file},
			Condition: s.condition,
			Cmds:      s.commands(),
		})
	})
	err := s.withOutput(t.err(file, s.script.File), t.log.String())
	s.recordLinesBefore(s.lastLine(err, t.skipped) + 1)
	if closeErr := s.close(); err == nil && closeErr != nil {
		err = fmt.Errorf("%s: after the last command: %w", s.script.File, closeErr)
	}
	if err == nil && !t.skipped {
		err = s.checkFired()
	}
	result := Result{
		Status: Passed, Log: t.log.String(), ServerLog: s.serverLog,
		Records: s.story.snapshot(), Scripted: time.Since(s.story.began),
		Report: s.report, Spent: s.spent,
	}
	switch {
	case err != nil:
		result.Status, result.Err, result.Line = Failed, err, lineOf(err, s.script.File)
	case t.skipped:
		result.Status, result.Reason = Skipped, t.reason
	}
	return result
}

// condition evaluates the conditions that this package adds to testscript's own.
func (s *session) condition(name string) (bool, error) {
	if name == "virtual" {
		return !s.opts.RealTime, nil
	}
	return false, fmt.Errorf("unknown condition; this package has [virtual], and testscript [short], [unix], [exec:PROGRAM] and the like")
}

// commands returns the commands in the form the engine wants.
func (s *session) commands() map[string]func(*testscript.TestScript, bool, []string) {
	run := map[string]func(*testscript.TestScript, bool, []string){}
	for _, c := range s.verbs {
		run[c.name] = func(ts *testscript.TestScript, neg bool, args []string) { s.invoke(ts, c, neg, args) }
	}
	return run
}

// invoke runs a command. An error fails the script, or after "!" lands in stderr.
func (s *session) invoke(ts *testscript.TestScript, c command, neg bool, args []string) {
	s.ts = ts
	s.out.Reset()
	if number, _, ok := currentLine(ts); ok {
		s.recordLinesBefore(number + 1)
	}
	var err error
	if s.outer.Err() == nil {
		err = c.invoke(s, args)
	}
	_, _ = s.out.WriteTo(ts.Stdout()) // a buffer of the engine's; it also clears the last command's
	var misuse usageError
	switch {
	case s.outer.Err() != nil:
		ts.Fatalf("%s: %v", c.name, errInterrupted)
	case errors.As(err, &misuse):
		ts.Fatalf("%s: %v", c.name, err)
	case neg && c.noNegation:
		ts.Fatalf("%s: it cannot be expected to fail; leave out the !", c.name)
	case neg && err == nil:
		ts.Fatalf("%s: succeeded, and was expected to fail", c.name)
	case neg:
		fmt.Fprintln(ts.Stderr(), err)
	case err != nil:
		ts.Fatalf("%s: %v", c.name, err)
	}
}

// recordLinesBefore adds the script's lines before that number to the story,
// each once: paragraphs of comments as phases, all else as commands.
func (s *session) recordLinesBefore(number int) {
	for s.recordedLines < min(number-1, len(s.lines)) {
		rest := s.lines[s.recordedLines:]
		if text := comment(rest); len(text) > 0 {
			s.story.addLine(phaseLine, strings.Join(text, " "))
			s.recordedLines += len(text)
			continue
		}
		line := strings.TrimSpace(rest[0])
		s.recordedLines++
		if s.isLeftOut(line) {
			continue
		}
		switch verb, _, _ := strings.Cut(line, " "); verb {
		case "", "note": // the note command adds its own line
			continue
		case "start", "restart":
			s.story.expectServer()
		}
		s.story.addLine(commandLine, line)
	}
}

// isLeftOut reports whether a line is only for the other kind of time.
func (s *session) isLeftOut(line string) bool {
	return strings.HasPrefix(line, "[!virtual]") && !s.opts.RealTime || strings.HasPrefix(line, "[virtual]") && s.opts.RealTime
}

// lastLine returns the number of the line at which the script ended.
func (s *session) lastLine(err error, skipped bool) int {
	if err == nil && !skipped {
		return len(s.lines)
	}
	if err != nil {
		if line := lineOf(err, s.script.File); line > 0 {
			return line
		}
	}
	return s.recordedLines
}

// lineOf is the line that an error of a script begins with, 0 if it has none.
func lineOf(err error, file string) int {
	after, _ := strings.CutPrefix(err.Error(), file+":")
	digits, _, _ := strings.Cut(after, ":")
	number, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return number
}

// scriptT is a testscript.T for one script. There is no testing.T behind it: a
// bubble must not use one from outside, and a program has none.
type scriptT struct {
	verbose bool
	failed  bool
	skipped bool
	reason  string
	log     strings.Builder
}

// abort is the panic that ends a script that has failed or skipped itself.
type abort struct{}

// Skip implements testscript.T.
func (t *scriptT) Skip(args ...any) {
	t.skipped, t.reason = true, fmt.Sprint(args...)
	panic(abort{})
}

// Fatal implements testscript.T.
func (t *scriptT) Fatal(args ...any) {
	t.Log(failMark + fmt.Sprint(args...))
	t.FailNow()
}

// FailNow implements testscript.T.
func (t *scriptT) FailNow() {
	t.failed = true
	panic(abort{})
}

// Log implements testscript.T.
func (t *scriptT) Log(args ...any) { fmt.Fprintln(&t.log, args...) }

// Parallel implements testscript.T. It does nothing: only one script runs.
func (t *scriptT) Parallel() {}

// Verbose implements testscript.T.
func (t *scriptT) Verbose() bool { return t.verbose }

// Run implements testscript.T: it runs the script here and now.
func (t *scriptT) Run(_ string, f func(testscript.T)) { t.attempt(f) }

// attempt runs f and recovers from its panics, orderly or not.
func (t *scriptT) attempt(f func(testscript.T)) {
	defer func() {
		reason := recover()
		if _, orderly := reason.(abort); reason != nil && !orderly {
			t.failed = true
			t.Log(failMark + fmt.Sprintf("panic: %v\n%s", reason, debug.Stack()))
		}
	}()
	f(t)
}

// failMark is the prefix of the engine's line that says what failed.
const failMark = "FAIL: "

// err returns the failure from the log, with the script's name as people know it.
func (t *scriptT) err(file, shown string) error {
	if !t.failed {
		return nil
	}
	_, text, found := strings.Cut("\n"+t.log.String(), "\n"+failMark)
	if !found {
		text = shown + ": failed"
	}
	return errors.New(strings.TrimSpace(strings.ReplaceAll(text, file, shown)))
}

// withOutput adds to the error of a match what the last command has printed, where the
// engine's log has kept it: only that from the last comment on.
func (s *session) withOutput(err error, log string) error {
	if err == nil {
		return nil
	}
	for _, name := range []string{"stdout", "stderr"} {
		if !strings.HasSuffix(err.Error(), " found in "+name) {
			continue
		}
		if output, known := lastOutput(log, name, s.commands()); known {
			return fmt.Errorf("%w%s", err, excerpt(output))
		}
	}
	return err
}

// lastOutput finds what the last of some commands has printed. Commands of the engine's
// own, such as env, leave that as it is.
func lastOutput[T any](log, name string, commands map[string]T) (output string, known bool) {
	for _, entry := range slices.Backward(strings.Split("\n"+log, "\n> ")) {
		line, printed, _ := strings.Cut(entry, "\n")
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '!' })
		for len(words) > 0 && strings.HasPrefix(words[0], "[") {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if _, ours := commands[words[0]]; !ours && words[0] != "exec" {
			continue
		}
		stdout, stderr, _ := strings.Cut("\n"+printed, "\n[stderr]\n")
		if name == "stderr" {
			return stderr, true
		}
		_, stdout, _ = strings.Cut(stdout, "\n[stdout]\n")
		return stdout, true
	}
	return "", false
}

// maxOutput is how many lines of a command's output an error shows.
const maxOutput = 20

// excerpt is the beginning of what a command has printed, below an error.
func excerpt(output string) string {
	if output == "" {
		return "; it was empty"
	}
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if len(lines) > maxOutput {
		lines = append(lines[:maxOutput], "...")
	}
	return ":\n  " + strings.Join(lines, "\n  ")
}
