// Command snowglobe runs a real kube-apiserver sealed in its own process: scenario
// scripts that shake it, a control plane for kubectl, the conformance cases and the
// benchmarks. It also lists the points where faults can be injected. It owns flags,
// signals and exit codes, and nothing else. The exit code is 0 for success, 1 if the
// command failed, 2 for wrong usage, and 130 if it was interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snowglobe.test/bench"
	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/explore/worker"
)

func main() { os.Exit(start()) }

func start() int {
	name := programName(os.Args[0])
	if name == kubectlName {
		return playKubectl() // which has signals of its own
	}
	ctx, stop := withSignals(context.Background(), os.Stderr)
	defer stop()
	if play, ok := standIns[name]; ok {
		return standInExit(name, os.Stderr, play(ctx, os.Args[1:], os.Stdout, os.Stderr))
	}
	if bench.StartupRequested() {
		return exitCode(os.Stderr, name, bench.StartupChild(ctx, os.Stdout))
	}
	if worker.Requested() {
		return exitCode(os.Stderr, name, worker.Serve(ctx, os.Stdin, os.Stdout, scenarios.Options{}))
	}
	return execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	restore := hideForeignFlags()
	defer restore()
	root := newRoot()
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		// By now our flags are parsed. Help and completion still list them.
		if !cmd.HasSubCommands() && cmd.Name() != "help" && !strings.HasPrefix(cmd.Name(), "__") {
			restore()
		}
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return exitCode(stderr, cmd.CommandPath(), afterAll(ctx, err))
}

// afterAll is what to say of a command's error: if it was interrupted, that, and not the
// errors that this caused.
func afterAll(ctx context.Context, err error) error {
	var stop *stopError
	if err != nil && ctx.Err() != nil && !errors.As(err, &stop) {
		return context.Cause(ctx)
	}
	return err
}

// exitCode prints an error of a command and returns the exit code for it.
func exitCode(stderr io.Writer, command string, err error) int {
	var failure *failureError
	var child *childError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(stderr, "snowglobe: interrupted")
		return exitInterrupted
	case errors.As(err, &child):
		return child.code
	case errors.As(err, &failure):
		fmt.Fprintf(stderr, "snowglobe: %v\n", failure)
		return exitFailed
	default: // a usage error, cobra's or ours
		fmt.Fprintf(stderr, "snowglobe: %v; see: %s --help\n", err, command)
		return exitUsage
	}
}

// failureError is a failure of the command, as opposed to wrong usage.
type failureError struct{ error }

// Unwrap returns what failed.
func (e *failureError) Unwrap() error { return e.error }

// stopError is why something that was interrupted did not end well.
type stopError struct{ error }

// Unwrap returns what went wrong.
func (e *stopError) Unwrap() error { return e.error }

// failed marks an error as a failure of the command. Nil stays nil.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &failureError{err}
}

// hideForeignFlags removes the flags of Kubernetes libraries, such as --version,
// which cobra would take for ours. The chain needs them restored when it starts.
func hideForeignFlags() (restore func()) {
	theirs := pflag.CommandLine
	pflag.CommandLine = pflag.NewFlagSet("snowglobe", pflag.ContinueOnError)
	return func() { pflag.CommandLine = theirs }
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "snowglobe",
		Short: "A real kube-apiserver sealed in a process, with its own weather and its own time",
		Long: `Snowglobe runs the real kube-apiserver inside its own process: on an in-memory
store, in virtual time if you like, with control over its hooks and caches.`,
		Example: `  snowglobe run                      # the scenario scripts, each with its story
  snowglobe scenario new race.txtar  # a script of your own to begin with
  snowglobe explore race.txtar       # seeds and faults under which it fails
  snowglobe test ./...               # go test, where a seed decides the whole run
  snowglobe up                       # a control plane for kubectl, until Ctrl-C
  snowglobe conformance --list       # what a control plane promises
  snowglobe bench startup            # how long it takes to start one
  snowglobe etcd                     # the in-memory etcd, for etcdctl and others
  snowglobe points                   # where operations can be held, failed or lost`,
		Version:       versions(),
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}")
	root.AddCommand(newRun(), newExplore(), newScenario(), newTest(), newUp(), newServe(), newConformance(), newBench(), newEtcd(), newAssets(), newPoints(), newTrace(), newVersion())
	return root
}

// errInterrupted is the cause of a context that Ctrl-C has cancelled.
var errInterrupted = errors.New("interrupted")

// withSignals returns a context that the first signal to terminate ends with
// errInterrupted; a second one ends the process. stop stops handling them.
func withSignals(parent context.Context, stderr io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	var handling sync.WaitGroup
	handling.Go(func() {
		for range asked {
			if ctx.Err() != nil {
				fmt.Fprintln(stderr, "snowglobe: ended at once")
				os.Exit(exitInterrupted)
			}
			cancel(errInterrupted)
		}
	})
	return ctx, func() {
		signal.Stop(asked)
		close(asked)
		handling.Wait()
		cancel(nil)
	}
}
