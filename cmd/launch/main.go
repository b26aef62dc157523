// Command launch builds snowglobe, says how far that is, and then becomes it, with the same arguments:
//
//	go run ./cmd/launch run
//
// "go run ./cmd/snowglobe" does the same in silence, which the first time lasts minutes. This build is
// a light one, which takes two thirds of the time; what it leaves out is built, and told of, by the
// first command that needs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"snowglobe.test/internal/gobuild"
	"snowglobe.test/internal/light"
)

// Exit codes as snowglobe has them.
const (
	exitUnjudged    = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	program, err := gobuild.Program(ctx, "", "snowglobe.test/cmd/snowglobe", []string{light.Tag}, os.Stderr)
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "snowglobe: interrupted")
		os.Exit(exitInterrupted)
	}
	stop()
	if err == nil {
		err = become(program)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "snowglobe:", err)
		os.Exit(exitUnjudged)
	}
}
