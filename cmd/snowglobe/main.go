// Command snowglobe runs a real kube-apiserver sealed in its own process: scenario
// scripts that shake it, a control plane for kubectl, the conformance cases and the
// benchmarks. It also lists the points where faults can be injected. It owns flags,
// signals and exit codes, and nothing else; exit.go has the codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snowglobe.test/internal/tempdir"
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
		ctx, stop := withTest(ctx)
		defer stop()
		return standInExit(name, os.Stderr, play(ctx, os.Args[1:], os.Stdout, os.Stderr))
	}
	if code, ok := playBenchChild(ctx, name); ok {
		return code
	}
	if worker.Requested() {
		defer endForSure(ctx, os.Stderr, endDelay, endAtOnce)()
		return exitCode(os.Stderr, name, failed(worker.Serve(ctx, os.Stdin, os.Stdout, scenarios.Options{})))
	}
	if len(os.Args) > 1 && os.Args[1] == runSeedsName {
		return exitCode(os.Stderr, name, runSeeds(ctx, os.Args[2:]))
	}
	return execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	restore := hideForeignFlags()
	defer restore()
	root := newRoot()
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		// By now our flags are parsed. Help and completion still list them.
		if !isGroup(cmd) && cmd.Name() != "help" && !strings.HasPrefix(cmd.Name(), "__") {
			restore()
		}
	}
	root.SetArgs(args)
	out := &output{to: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return exitCode(stderr, cmd.CommandPath(), out.also(afterAll(ctx, err)))
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
store, in virtual time if you like, with control over its hooks and caches.

` + exitCodes,
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
	root.AddCommand(newRun(), newExplore(), newScenario(), newTest(), newUp(), newServe(), newEtcd(), newRelease(),
		newPoints(), newTrace(), newVersion())
	root.AddCommand(wholeCommands()...)
	return root
}

// isGroup reports whether a command does nothing but help with those below it.
func isGroup(cmd *cobra.Command) bool {
	return cmd.HasSubCommands() && cmd.Name() != "conformance"
}

// errInterrupted is the cause of a context that Ctrl-C has cancelled.
var errInterrupted = errors.New("interrupted")

// endAtOnce ends the process without waiting for anything; what it has in the temporary
// folder is removed.
func endAtOnce(code int) {
	tempdir.RemoveAll()
	os.Exit(code)
}

// withSignals returns a context that the first signal to terminate ends with
// errInterrupted; a second one ends the process. stop stops handling them.
func withSignals(parent context.Context, stderr io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		signal.Notify(asked, syscall.SIGHUP)
	}
	var handling sync.WaitGroup
	handling.Go(func() {
		obey(asked, func() { cancel(errInterrupted) }, func() {
			fmt.Fprintln(stderr, "snowglobe: ended at once")
			endAtOnce(exitInterrupted)
		})
	})
	return ctx, func() {
		signal.Stop(asked)
		close(asked)
		handling.Wait()
		cancel(nil)
	}
}

// sentTwice is how long the first signal may be followed by itself: timeout and npm send it to
// their child, and to the group of processes that it is in.
const sentTwice = time.Second

// obey calls end for the first signal, and atOnce for those after it.
func obey(asked <-chan os.Signal, end, atOnce func()) {
	first, open := <-asked
	if !open {
		return
	}
	began := time.Now()
	end()
	for next := range asked {
		if next != first || time.Since(began) > sentTwice {
			atOnce()
		}
	}
}

// parallelVar adds the flag for how many things are done at a time.
func parallelVar(flags *pflag.FlagSet, n *int, usage string) {
	flags.IntVar(n, "parallel", runtime.GOMAXPROCS(0), usage)
	flags.Lookup("parallel").DefValue = "one for each processor" // the same on every machine, for the page
}
