package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/group"
	"snowglobe.test/internal/tempdir"
)

// limit is how long a run may take on the wall. One that takes longer never ends.
const limit = 6 * time.Second

// Verdicts on a run.
const (
	passed   = ""
	deadlock = "deadlock" // goroutines wait for ever
	broken   = "broken"   // it panics, or its test fails
	endless  = "endless"  // it does not end
)

// binaries are the kernels, built.
type binaries struct{ folder string }

// buildAll builds kernels in sim mode, in a folder.
func buildAll(ctx context.Context, folder string, all []kernel, options Options) (binaries, error) {
	if err := writeModule(folder, all); err != nil {
		return binaries{}, err
	}
	b := binaries{filepath.Join(folder, "bin")}
	if err := os.Mkdir(b.folder, 0o700); err != nil {
		return binaries{}, fmt.Errorf("kernels: %w", err)
	}
	command, err := sim.Test(ctx, "-c", "-o", b.folder+string(filepath.Separator), "./...")
	if err != nil {
		return binaries{}, err
	}
	var said bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = folder, &said, &said
	if err := sim.Run(command, options.Progress); err != nil {
		return binaries{}, fmt.Errorf("build the kernels: %w\n%s", err, said.String())
	}
	return b, nil
}

// run runs a kernel once, or twice if the search has to count, and says how it ended and what it wrote.
func (b binaries) run(
	ctx context.Context, name string, search sim.Search, seed uint64,
) (verdict, said string, err error) {
	if !search.Counts() {
		return b.runWith(ctx, name, search, seed, nil)
	}
	folder, err := tempdir.Make("counts")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = folder.Remove() }() // what is left is for the next one
	counts := sim.Counts(filepath.Join(folder.Path(), "counts"))
	if verdict, said, err := b.runWith(ctx, name, search, seed, counts.First()); err != nil || verdict == endless {
		return verdict, said, err
	}
	then, err := counts.Then()
	if err != nil {
		return "", "", err
	}
	return b.runWith(ctx, name, search, seed, then)
}

func (b binaries) runWith(
	ctx context.Context, name string, search sim.Search, seed uint64, more []string,
) (verdict, said string, err error) {
	command := exec.CommandContext(ctx, filepath.Join(b.folder, name+".test"), "-test.timeout="+limit.String())
	command.Env = append(append(os.Environ(), search.Environment()...), more...)
	command.Env = append(command.Env, sim.SeedVariable+"="+strconv.FormatUint(seed, 10))
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err = group.Run(command)
	exit := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil:
		return "", "", context.Cause(ctx)
	case err != nil && !errors.As(err, &exit):
		return "", "", fmt.Errorf("run %s: %w", name, err)
	}
	return judge(err == nil, out.String()), out.String(), nil
}

func judge(ok bool, said string) string {
	switch {
	case ok:
		return passed
	case strings.Contains(said, "panic: test timed out after"):
		return endless
	case strings.Contains(said, "deadlock: all goroutines"), strings.Contains(said, "deadlock: main bubble goroutine"):
		return deadlock
	}
	return broken
}

// addresses are what differs between two runs of a seed: where memory is.
var addresses = regexp.MustCompile(`0x[0-9a-f]+|\d+\.\d+s`)

// sameRuns runs a kernel that fails again and again, and counts how often it fails in the same words.
func (b binaries) sameRuns(
	ctx context.Context, name string, search sim.Search, seed uint64, times int,
) (same int, err error) {
	verdict, first, err := b.run(ctx, name, search, seed)
	if err != nil || verdict == passed {
		return 0, err
	}
	for range times {
		_, again, err := b.run(ctx, name, search, seed)
		if err != nil {
			return 0, err
		}
		if addresses.ReplaceAllString(again, "") == addresses.ReplaceAllString(first, "") {
			same++
		}
	}
	return same, nil
}
