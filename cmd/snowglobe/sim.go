package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/gobuild"
	"snowglobe.test/internal/group"
	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/script"
)

const importPath = "snowglobe.test/cmd/snowglobe"

// runInSim runs the command again, in a build of this program in sim mode.
func runInSim(cmd *cobra.Command, args []string) error {
	program, err := sim.Program(cmd.Context(), sourceFolder(), importPath, cmd.ErrOrStderr())
	if err != nil {
		return failed(fmt.Errorf("%w\nwith --sim=false the seed decides the order of operations only", err))
	}
	again := []string{cmd.Name()}
	cmd.Flags().Visit(func(f *pflag.Flag) { again = append(again, "--"+f.Name+"="+f.Value.String()) })
	return runChild(cmd, exec.CommandContext(cmd.Context(), program, append(append(again, "--"), args...)...), group.Run)
}

// leftOut reports whether this build can't run one of the scripts.
func leftOut(scripts ...script.Script) bool {
	return slices.ContainsFunc(scripts, func(one script.Script) bool { return len(scenarios.LeftOut(one)) > 0 })
}

// runWhole runs the command again, in a build of this program that leaves nothing out.
func runWhole(cmd *cobra.Command) error {
	program, err := gobuild.Program(cmd.Context(), sourceFolder(), importPath, nil, cmd.ErrOrStderr())
	if err != nil {
		return failed(err)
	}
	return runChild(cmd, exec.CommandContext(cmd.Context(), program, os.Args[1:]...), group.Run)
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

// endDelay is how long an interrupted command may take to end before it is ended. It is less
// than it gets as a child, which is killed after that and leaves its temporary folders.
const endDelay = group.Grace - 2*time.Second

// runChild runs a program in the place of this one, with run. It is killed when it does not
// end in time after an interrupt: virtual time that never moves can keep it from it.
func runChild(cmd *cobra.Command, child *exec.Cmd, run func(*exec.Cmd) error) error {
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, beneath(cmd.OutOrStdout()), cmd.ErrOrStderr()
	err := run(child)
	exit := (*exec.ExitError)(nil)
	switch {
	case cmd.Context().Err() != nil:
		return context.Cause(cmd.Context())
	case errors.As(err, &exit) && exit.Exited():
		return &childError{exit.ExitCode()}
	case errors.As(err, &exit):
		return failed(fmt.Errorf("%s was ended by a signal before it could judge anything: %w", filepath.Base(child.Path), err))
	}
	return failed(err)
}

// childError is a failure that a child has told already.
type childError struct{ code int }

func (e *childError) Error() string { return fmt.Sprintf("exit code %d", e.code) }
