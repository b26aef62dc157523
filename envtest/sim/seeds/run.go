package seeds

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/group"
	"snowglobe.test/internal/tempdir"
	"snowglobe.test/internal/unixsocket"
)

// Binary is a test binary, as go test -exec calls it, and under which seeds it runs.
type Binary struct {
	Program string
	Args    []string // flags of package testing
	Seeds   Range
	Timeout time.Duration // for each seed
	Socket  string        // of the Search
}

// ErrFailed is the error of Run when a seed has failed.
var ErrFailed = errors.New("seeds failed")

// runner is one Run.
type runner struct {
	Binary
	importPath string
	next       atomic.Uint64 // how many seeds have begun
	failed     atomic.Bool
	nothing    atomic.Bool // the binary has no tests to run

	mu  sync.Mutex // guards out
	out io.Writer
}

// Run runs a test binary once for each seed, when the search gives it turns, and writes what
// it says of seeds that fail.
func Run(ctx context.Context, binary Binary, out io.Writer) error {
	r := &runner{Binary: binary, out: out}
	info, err := buildinfo.ReadFile(binary.Program)
	if err != nil {
		return fmt.Errorf("test binary: %w", err)
	}
	r.importPath = strings.TrimSuffix(info.Path, ".test")
	r.Args = slices.DeleteFunc(slices.Clone(r.Args), func(arg string) bool { return strings.HasPrefix(arg, "-test.timeout=") })
	var workers sync.WaitGroup
	errs := make([]error, runtime.NumCPU())
	for i := range errs {
		workers.Go(func() { errs[i] = r.work(ctx) })
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if r.failed.Load() {
		return ErrFailed
	}
	return nil
}

// work runs seeds until there are no more.
func (r *runner) work(ctx context.Context) error {
	for ctx.Err() == nil && !r.nothing.Load() {
		n := r.next.Add(1) - 1
		if n > r.Seeds.Last-r.Seeds.First {
			return nil
		}
		if more, err := r.inTurn(ctx, r.Seeds.First+n); err != nil || !more {
			return err
		}
	}
	return context.Cause(ctx)
}

// inTurn runs a seed in its turn. It reports false if the search has ended.
func (r *runner) inTurn(ctx context.Context, seed uint64) (more bool, err error) {
	conn, err := unixsocket.Dial(ctx, r.Socket)
	if err != nil {
		return false, nil // it ends
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return false, nil
	}
	if r.failed.Load() && r.flag("failfast") {
		return false, nil // whoever looks at the failure ends the search
	}
	result, err := r.run(ctx, seed)
	if err != nil {
		return false, err
	}
	if err := json.NewEncoder(conn).Encode(report{Result: result, Enough: result.Failed && r.flag("failfast")}); err != nil {
		return false, nil // it ends
	}
	_, _ = conn.Read(make([]byte, 1)) // until it has been read, and the search closes the connection
	return true, nil
}

// run runs the tests under a seed and, if one fails, that one again by itself.
func (r *runner) run(ctx context.Context, seed uint64) (Result, error) {
	begun := time.Now()
	said, failed, err := r.start(ctx, seed, r.Args)
	if err != nil {
		return Result{}, err
	}
	result := Result{Package: r.importPath, Seed: seed, Failed: failed, Seconds: time.Since(begun).Seconds()}
	result.NotRunnable = NotRunnable(said)
	if failed {
		r.failed.Store(true)
		var ended bool
		result.Tests, ended = failures(said)
		result.Alone = ended && r.failsAlone(ctx, seed, result.Tests[0])
	}
	r.say(seed, failed, said)
	return result, nil
}

// start runs the binary once, or twice if the first run has to count for the second.
func (r *runner) start(ctx context.Context, seed uint64, args []string) (said []byte, failed bool, err error) {
	if !sim.GivenSearch().Counts() {
		return r.startWith(ctx, seed, args, nil)
	}
	folder, err := tempdir.Make("counts")
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = folder.Remove() }() // what is left is for the next one
	counts := sim.Counts(filepath.Join(folder.Path(), "counts"))
	if _, _, err := r.startWith(ctx, seed, args, counts.First()); err != nil {
		return nil, false, err
	}
	more, err := counts.Then()
	if err != nil {
		return nil, false, err
	}
	return r.startWith(ctx, seed, args, more)
}

// startWith runs the binary once, with more variables in its environment.
func (r *runner) startWith(
	ctx context.Context, seed uint64, args, more []string,
) (said []byte, failed bool, err error) {
	command := exec.CommandContext(ctx, r.Program, append([]string{"-test.timeout=" + r.Timeout.String()}, args...)...)
	command.Env = append(append(os.Environ(), more...), sim.SeedVariable+"="+strconv.FormatUint(seed, 10))
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	command.WaitDelay = group.Grace / 2 // whoever interrupts us waits for Grace
	err = group.Run(command)
	exit := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case errors.As(err, &exit):
		return out.Bytes(), true, nil
	}
	return out.Bytes(), false, err
}

// failsAlone reports whether a test fails under the seed if it alone runs in its process.
func (r *runner) failsAlone(ctx context.Context, seed uint64, test string) bool {
	args := slices.DeleteFunc(slices.Clone(r.Args), func(arg string) bool { return strings.HasPrefix(arg, "-test.run=") })
	said, failed, err := r.start(ctx, seed, append([]string{"-test.run=" + sim.OnlyTest(test)}, args...))
	if err != nil || !failed {
		return false
	}
	tests, ended := failures(said)
	return ended && slices.Contains(tests, test)
}

// failedTest is the line that package testing writes for a test that failed, with a mark in
// front when go test -json asks for it.
var failedTest = regexp.MustCompile(`(?m)^\x16?--- FAIL: (\S+) `)

// refusedTest is what sim mode says of a test that can't run in the bubble it has been put into.
var refusedTest = regexp.MustCompile(`(?m)^snowglobe: (\S+ is not runnable in a bubble: .*)$`)

// NotRunnable finds in what a test binary has said which tests can't run in the bubble that they have been put into:
// "TestX is not runnable in a bubble: it calls t.Parallel".
func NotRunnable(said []byte) (tests []string) {
	for _, m := range refusedTest.FindAllSubmatch(said, -1) {
		tests = append(tests, string(m[1]))
	}
	return tests
}

// runningTest is what it writes of a test that runs when the time is up.
var runningTest = regexp.MustCompile(`(?m)^panic: test timed out after .*\n\trunning tests:\n\t\t(\S+) `)

// failures are the tests that failed. It reports false if they did not come to their end.
func failures(said []byte) (tests []string, ended bool) {
	for _, m := range failedTest.FindAllSubmatch(said, -1) {
		tests = append(tests, string(m[1]))
	}
	if m := runningTest.FindSubmatch(said); m != nil {
		return append(tests, string(m[1])), false
	}
	return tests, len(tests) > 0
}

// noTests is what package testing says of a binary without tests to run; go test looks for it.
const noTests = "testing: warning: no tests to run\n"

// say writes what the tests have said, if it matters.
func (r *runner) say(seed uint64, failed bool, said []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case failed, r.flag("v"):
		fmt.Fprintf(r.out, "=== seed %d\n%s", seed, said)
	case bytes.Contains(said, []byte(noTests)) && !r.nothing.Swap(true):
		fmt.Fprint(r.out, noTests)
	}
}

// flag reports whether a boolean flag of package testing is on.
func (r *runner) flag(name string) bool {
	return slices.ContainsFunc(r.Args, func(arg string) bool {
		value, ok := strings.CutPrefix(arg, "-test."+name+"=")
		return ok && value != "false"
	})
}
