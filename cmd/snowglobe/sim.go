package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snowglobe.test/envtest/sim"
)

func newTest() *cobra.Command {
	return &cobra.Command{
		Use:   "test [GO-TEST-ARGUMENT...]",
		Short: "Run go test in sim mode, where a seed decides the whole run",
		Long: `Run go test with these arguments in sim mode: in tests that use Simulate and
WithSeed, the seed then decides everything, down to which goroutine runs next, and a
failure can be repeated. Each test binary uses one processor; packages run in
parallel. The first time, everything is rebuilt, which takes minutes.`,
		Example: `  snowglobe test ./...
  snowglobe test -run TestLeaderElection -v ./controllers`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "-h" || args[0] == "--help" || args[0] == "help") {
				return cmd.Help()
			}
			test, err := sim.Test(cmd.Context(), args...)
			if err != nil {
				return failed(err)
			}
			return runChild(cmd, test)
		},
	}
}

// runInSim runs the command again, in a build of this program in sim mode.
func runInSim(cmd *cobra.Command, args []string) error {
	program, err := sim.Program(cmd.Context(), sourceFolder(), "snowglobe.test/cmd/snowglobe", cmd.ErrOrStderr())
	if err != nil {
		return failed(fmt.Errorf("%w\nwith --sim=false the seed decides the order of operations only", err))
	}
	again := []string{cmd.Name()}
	cmd.Flags().Visit(func(f *pflag.Flag) { again = append(again, "--"+f.Name+"="+f.Value.String()) })
	return runChild(cmd, exec.CommandContext(cmd.Context(), program, append(append(again, "--"), args...)...))
}

// sourceFolder is where the source of this program is, or else the current folder,
// whose module may require it.
func sourceFolder() string {
	_, file, _, _ := runtime.Caller(0)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return filepath.Dir(file)
}

// endDelay is how long an interrupted child may take to end before it is killed.
const endDelay = 10 * time.Second

// runChild runs a program in the place of this one. It is killed when it does not
// end in time after an interrupt: virtual time that never moves can keep it from it.
func runChild(cmd *cobra.Command, child *exec.Cmd) error {
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
	ownGroup(child)
	child.Cancel = func() error { return interrupt(child.Process) }
	child.WaitDelay = endDelay
	err := child.Run()
	endGroup(child)
	exit := (*exec.ExitError)(nil)
	switch {
	case cmd.Context().Err() != nil:
		return context.Cause(cmd.Context())
	case errors.As(err, &exit):
		return &childError{exit.ExitCode()}
	}
	return failed(err)
}

// childError is a failure that a child has told already.
type childError struct{ code int }

func (e *childError) Error() string { return fmt.Sprintf("exit code %d", e.code) }
