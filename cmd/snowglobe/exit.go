package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// The exit codes, which are the same for all commands.
const (
	exitOK          = 0
	exitBroken      = 1
	exitUnjudged    = 2
	exitInterrupted = 130
)

// exitCodes is what the help says of them.
const exitCodes = `Exit codes: 0 for success; 1 if something was judged and found wrong, such as a script
that failed or a promise that is broken; 2 if nothing could be judged, because of wrong
usage, a missing file or a target that can't be reached; 130 if it was interrupted. See
docs/exit-codes.md.`

// afterAll returns the error to report of a command. If the command was interrupted, it is the
// interruption and not the errors that this caused, unless one is a stopError.
func afterAll(ctx context.Context, err error) error {
	var stop *stopError
	if err != nil && ctx.Err() != nil && !errors.As(err, &stop) {
		return context.Cause(ctx)
	}
	return err
}

// exitCode prints an error of a command and returns the exit code for it.
func exitCode(stderr io.Writer, command string, err error) int {
	var child *childError
	var found *verdictError
	var failure *failureError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(stderr, "snowglobe: interrupted")
		return exitInterrupted
	case errors.As(err, &child):
		return child.code
	case errors.As(err, &found):
		fmt.Fprintf(stderr, "snowglobe: %v\n", err)
		return exitBroken
	case errors.As(err, &failure):
		fmt.Fprintf(stderr, "snowglobe: %v\n", err)
		return exitUnjudged
	default: // wrong usage, which cobra or we have found
		fmt.Fprintf(stderr, "snowglobe: %v; see: %s --help\n", err, command)
		return exitUnjudged
	}
}

// verdictError says what was judged and found wrong.
type verdictError struct{ error }

// Unwrap returns what was found.
func (e *verdictError) Unwrap() error { return e.error }

// verdict marks an error as something that was judged and found wrong. Nil stays nil.
func verdict(err error) error {
	if err == nil {
		return nil
	}
	return &verdictError{err}
}

// verdictIf marks an error as a verdict if it is or wraps found, and as a failure otherwise.
func verdictIf(err, found error) error {
	if errors.Is(err, found) {
		return verdict(err)
	}
	return failed(err)
}

// failureError says why a command could not do what it was told to. An error that is
// neither this nor a verdict is about wrong usage.
type failureError struct{ error }

// Unwrap returns what failed.
func (e *failureError) Unwrap() error { return e.error }

// failed marks an error as a failure, and not wrong usage. Nil stays nil, and exitCode still finds
// a verdict in it.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &failureError{err}
}

// stopError is why something that was interrupted did not end well.
type stopError struct{ error }

// Unwrap returns what went wrong.
func (e *stopError) Unwrap() error { return e.error }
