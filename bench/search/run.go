package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// program is a test binary.
type program struct {
	path   string
	folder string   // that it runs in
	args   []string // which of its tests run
	limit  time.Duration
}

// binaries are the kernels, built.
type binaries struct{ folder string }

// kernel is the binary of one.
func (b binaries) kernel(name string) program {
	return program{path: filepath.Join(b.folder, name+".test"), limit: limit}
}

// buildAll builds kernels in sim mode, in a folder.
func buildAll(ctx context.Context, folder string, all []kernel, options Options) (binaries, error) {
	if err := writeModule(folder, all); err != nil {
		return binaries{}, err
	}
	b := binaries{filepath.Join(folder, "bin")}
	if err := os.Mkdir(b.folder, 0o700); err != nil {
		return binaries{}, fmt.Errorf("kernels: %w", err)
	}
	return b, buildTests(ctx, options.Progress, folder, "-o", b.folder+string(filepath.Separator), "./...")
}

// buildTests builds test binaries in sim mode.
func buildTests(ctx context.Context, progress io.Writer, folder string, args ...string) error {
	command, err := sim.Test(ctx, append([]string{"-c"}, args...)...)
	if err != nil {
		return err
	}
	var said bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = folder, &said, &said
	if err := sim.Run(command, progress); err != nil {
		return fmt.Errorf("build %s: %w\n%s", args[len(args)-1], err, said.String())
	}
	return nil
}

// run runs a program once, or twice if the search has to count, and says how it ended and what it wrote.
func (p program) run(ctx context.Context, search sim.Search, seed uint64) (verdict, said string, err error) {
	if !search.Counts() {
		return p.runWith(ctx, search, seed, nil)
	}
	folder, err := tempdir.Make("counts")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = folder.Remove() }() // what is left is for the next one
	counts := sim.Counts(filepath.Join(folder.Path(), "counts"))
	if verdict, said, err := p.runWith(ctx, search, seed, counts.First()); err != nil || verdict == endless {
		return verdict, said, err
	}
	then, err := counts.Then()
	if err != nil {
		return "", "", err
	}
	return p.runWith(ctx, search, seed, then)
}

func (p program) runWith(
	ctx context.Context, search sim.Search, seed uint64, more []string,
) (verdict, said string, err error) {
	command := exec.CommandContext(ctx, p.path, append([]string{"-test.timeout=" + p.limit.String()}, p.args...)...)
	command.Dir = p.folder
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
		return "", "", fmt.Errorf("run %s: %w", filepath.Base(p.path), err)
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

// sameRuns runs a program that fails again and again, and counts how often it fails in the same words.
func (p program) sameRuns(ctx context.Context, search sim.Search, seed uint64, times int) (same int, err error) {
	verdict, first, err := p.run(ctx, search, seed)
	if err != nil || verdict == passed {
		return 0, err
	}
	for range times {
		_, again, err := p.run(ctx, search, seed)
		if err != nil {
			return 0, err
		}
		if addresses.ReplaceAllString(again, "") == addresses.ReplaceAllString(first, "") {
			same++
		}
	}
	return same, nil
}
