package engine

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// The commands that look for a pattern. Two of them are also the names of what the last
// command printed, where a file can be given.
const (
	stdoutName = "stdout"
	stderrName = "stderr"
	grepName   = "grep"
)

// matches reports whether a command looks for a pattern. The errors of these say where they looked.
func matches(name string) bool {
	return slices.Contains([]string{stdoutName, stderrName, grepName}, name)
}

// isOutput reports whether a name stands for what the last command printed.
func isOutput(name string) bool { return name == stdoutName || name == stderrName }

// countFlag begins the number of matches that the commands take before their pattern.
const countFlag = "-count="

// patternArgs is the synopsis of stdout and stderr.
const patternArgs = "[" + countFlag + "N] PATTERN"

// splitPattern takes the count and the pattern out of the arguments.
func splitPattern(args []string) (count, pattern string, rest []string) {
	if len(args) > 0 && strings.HasPrefix(args[0], countFlag) {
		count, args = strings.TrimPrefix(args[0], countFlag), args[1:]
	}
	if len(args) == 0 {
		return count, "", nil
	}
	return count, args[0], args[1:]
}

func checkPattern(_ *pflag.FlagSet, args []string) error {
	_, text, _ := splitPattern(args)
	if _, err := regexp.Compile(text); text == "" || err != nil {
		return cmp.Or(err, ErrUsage)
	}
	return nil
}

func greppedFiles(_ *pflag.FlagSet, args []string) []NamedFile {
	_, _, rest := splitPattern(args)
	return NamedFiles(nil, rest...)
}

func matchStdout(r *Run, negated bool, args []string) error {
	return matchOutput(stdoutName, r.shell.state.Stdout(), negated, args)
}

func matchStderr(r *Run, negated bool, args []string) error {
	return matchOutput(stderrName, r.shell.state.Stderr(), negated, args)
}

func matchOutput(name, text string, negated bool, args []string) error {
	count, pattern, rest := splitPattern(args)
	if len(rest) > 0 {
		return &UsageError{ErrUsage, name + " " + patternArgs}
	}
	found, err := match(name, text, count, pattern, negated)
	if err != nil && !found {
		return fmt.Errorf("%w%s", err, excerpt(text))
	}
	return err
}

func grep(r *Run, negated bool, args []string) error {
	count, pattern, files := splitPattern(args)
	if len(files) != 1 {
		return &UsageError{ErrUsage, grepName + " " + patternArgs + " FILE"}
	}
	text, err := r.ReadFile(files[0])
	if err != nil {
		return err
	}
	_, err = match(files[0], text, count, pattern, negated)
	return err
}

// match looks for a pattern, which must match count times if count is not empty. found is false
// only if a wanted pattern has no match.
func match(name, text, count, pattern string, negated bool) (found bool, err error) {
	wanted, err := wantedCount(count, negated)
	if err != nil {
		return true, err
	}
	expr, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return true, err
	}
	matches := expr.FindAllString(text, -1)
	switch {
	case negated && len(matches) > 0:
		return true, fmt.Errorf("unexpected match for %#q found in %s: %s", pattern, name, matches[0])
	case !negated && len(matches) == 0:
		return false, fmt.Errorf("no match for %#q found in %s", pattern, name)
	case wanted > 0 && len(matches) != wanted:
		return true, fmt.Errorf("have %d matches for %#q, want %d", len(matches), pattern, wanted)
	}
	return true, nil
}

// wantedCount reads a count, which is 0 for any number.
func wantedCount(text string, negated bool) (int, error) {
	if text == "" {
		return 0, nil
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 || negated {
		return 0, fmt.Errorf("%s%s: it is a number above 0, and nothing that goes with !", countFlag, text)
	}
	return count, nil
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
