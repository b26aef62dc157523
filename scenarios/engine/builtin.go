package engine

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/pflag"
)

// builtin is a command about files, programs and what was printed, as far as it can be
// judged before a script runs. rsc.io/script has those without run.
type builtin struct {
	Command
	run func(r *Run, negated bool, args []string) error
}

func builtins() []builtin {
	list := []builtin{
		{Command: Command{Name: "cd", Makes: madeAny}}, // from then on, names are those of another folder
		{Command: Command{Name: "chmod"}},
		{Command: Command{Name: "cmp", Asserts: true, Files: allFiles}},
		{Command: Command{Name: "cmpenv", Asserts: true, Files: allFiles}},
		{Command: Command{Name: "cp", Files: sourceFiles, Makes: madeLast}},
		{Command: Command{Name: "env"}},
		{Command: Command{Name: localExecName, Asserts: true, Makes: madeAny}},
		{Command: Command{Name: "exists", Asserts: true}},
		{Command{Name: grepName, Args: patternArgs + " FILE", Asserts: true, Static: checkPattern, Files: greppedFiles},
			grep},
		{Command: Command{Name: "mkdir"}},
		{Command: Command{Name: "mv", Files: sourceFiles, Makes: madeLast}},
		{Command: Command{Name: "rm"}},
		{Command{Name: "skip"}, skip},
		{Command{Name: stderrName, Args: patternArgs, Asserts: true, Static: checkPattern}, matchStderr},
		{Command{Name: stdoutName, Args: patternArgs, Asserts: true, Static: checkPattern}, matchStdout},
		{Command{Name: "stop", Args: "[REASON]", Static: checkStop}, stop},
		{Command: Command{Name: "symlink", Makes: madeAny}},
		{Command{Name: "unquote", Files: allFiles,
			Makes: func(args []string, file string) bool { return slices.Contains(args, file) }}, unquote},
		{Command: Command{Name: "wait", Asserts: true}},
	}
	for i := range list {
		list[i].Verbatim = true
	}
	return list
}

// AllCommands are the commands of a script with the commands of the engine's own.
func AllCommands(commands []Command) []Command {
	all := slices.Clone(commands)
	for _, b := range builtins() {
		all = append(all, b.Command)
	}
	return all
}

// checkStop refuses a stop without a reason, since it looks as if it stopped a server.
func checkStop(_ *pflag.FlagSet, args []string) error {
	if len(args) == 0 {
		return errors.New("it ends the script here; write shutdown to stop the API server, or stop with a reason to " +
			"end the script")
	}
	return nil
}

// stop ends the script, which has passed so far.
func stop(r *Run, _ bool, _ []string) error {
	r.ended = true
	return nil
}

// skip ends the script, as Skip.
func skip(r *Run, _ bool, args []string) error {
	r.Skip(strings.Join(args, " "))
	return nil
}

// Skip ends the script after the present command, which says nothing then, for a reason.
func (r *Run) Skip(reason string) { r.ended, r.skipped, r.reason = true, true, reason }

// unquote takes the > away with which the lines of files begin, as a line that would
// begin another file has to.
func unquote(r *Run, _ bool, args []string) error {
	for _, name := range args {
		text, err := os.ReadFile(r.Path(name))
		if err != nil {
			return err
		}
		if text, err = txtar.Unquote(text); err != nil {
			return err
		}
		if err := os.WriteFile(r.Path(name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// allFiles are all arguments.
func allFiles(_ *pflag.FlagSet, args []string) []NamedFile {
	return NamedFiles(nil, args...)
}

// sourceFiles are all but the last, or the only one.
func sourceFiles(_ *pflag.FlagSet, args []string) []NamedFile {
	return NamedFiles(nil, args[:max(min(len(args), 1), len(args)-1)]...)
}

func madeAny([]string, string) bool { return true }

// madeLast reports whether a file is the last argument, or in the folder that this is.
func madeLast(args []string, file string) bool {
	if len(args) == 0 {
		return false
	}
	to := path.Clean(args[len(args)-1])
	return file == to || strings.HasPrefix(file, to+"/")
}
