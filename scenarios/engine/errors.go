package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/internal/nearest"
)

// Failure is the error of a script: what failed, and where.
type Failure struct {
	Script  string // as errors call it
	Line    int
	Text    string // of the line
	Command string // what failed; "" if the error says that
	Err     error
	folder  string // of the run, which will be gone
}

// Error implements error.
func (f *Failure) Error() string {
	what := ""
	if f.Command != "" {
		what = f.Command + ": "
	}
	text := fmt.Sprintf("%s:%d: %s%v", f.Script, f.Line, what, f.Err)
	return strings.ReplaceAll(text, f.folder, "$WORK")
}

// Unwrap returns what failed.
func (f *Failure) Unwrap() error { return f.Err }

// FolderError is the error of a script whose files could not be written: it has not run.
type FolderError struct{ Err error }

// Error implements error.
func (e *FolderError) Error() string { return fmt.Sprintf("folder of the run: %v", e.Err) }

// Unwrap returns what is wrong with the folder.
func (e *FolderError) Unwrap() error { return e.Err }

// UsageError is a mistake in the script itself, which fails even after "!".
type UsageError struct {
	err   error
	usage string
}

// Error implements error.
func (e *UsageError) Error() string { return fmt.Sprintf("%v (usage: %s)", e.err, e.usage) }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.err }

var (
	// ErrUsage is the error for arguments that do not match a command's synopsis.
	ErrUsage = errors.New("wrong arguments")
	// ErrInterrupted is the error of a script whose context has ended.
	ErrInterrupted = errors.New("interrupted")

	errSucceeded = errors.New("succeeded, and was expected to fail")
)

// CheckName refuses a name that is not known, in the words of missing: "no store is called".
func CheckName(missing, name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	return fmt.Errorf("%w: %s %q%s; there are %s", ErrUsage, missing, name, nearest.DidYouMean(name, known),
		nearest.Either(known))
}

// Misuse is the error of what a script says wrong: an ErrUsage that says what. Nil stays nil.
func Misuse(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUsage, err)
}
