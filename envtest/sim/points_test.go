package sim_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/pages"
)

// searched runs the program of testdata as a Search does, and returns all that it says.
func searched(ctx context.Context, program string, search sim.Search, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), search.Environment()...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// TestPoints looks at which operations another goroutine can get the processor.
func TestPoints(t *testing.T) {
	program := decided(t)
	for _, strategy := range sim.Strategies {
		t.Run(strategy, func(t *testing.T) {
			search := sim.Search{Strategy: strategy}
			out, err := searched(t.Context(), program, search, "orders", "1")
			require.NoError(t, err, out)
			both := strings.Count(out, ": [1 2]\n")
			switch strategy {
			case "random":
				assert.Zero(t, both, out)
			case "pct": // at two points of a run it gives way
				assert.NotZero(t, both, out)
			default:
				assert.Equal(t, strings.Count(out, "\n"), both, out)
			}
			again, err := searched(t.Context(), program, search, "orders", "1", "disturbed")
			require.NoError(t, err)
			assert.Equal(t, out, again)
		})
	}
}

// TestLate compares how often others come in between with how often they do in pos.
func TestLate(t *testing.T) {
	program := decided(t)
	counts := func(strategy string) (counts []int) {
		out, err := searched(t.Context(), program, sim.Search{Strategy: strategy}, "overtaken", "1")
		require.NoError(t, err, out)
		for _, digits := range regexp.MustCompile(`\d+`).FindAllString(out, -1) {
			count, err := strconv.Atoi(digits)
			require.NoError(t, err)
			counts = append(counts, count)
		}
		require.Len(t, counts, 3, out)
		return counts
	}
	late := counts("late")
	for i, pos := range counts("pos") {
		assert.Greater(t, late[i], pos*9/8, "how often another came in, with late and with pos (%d)", pos)
	}
}

// TestHeld sleeps for hours while a mutex is held that others want.
func TestHeld(t *testing.T) {
	program := decided(t)
	for _, strategy := range sim.Strategies {
		out, err := searched(t.Context(), program, sim.Search{Strategy: strategy}, "held", "1")
		require.NoError(t, err, out)
		assert.Equal(t, "at least true\n", out)
	}
}

// TestDeadlocks looks at what is said of them.
func TestDeadlocks(t *testing.T) {
	program := decided(t)
	out, err := searched(t.Context(), program, sim.Search{}, "cycle", "1")
	require.Error(t, err)
	assert.Regexp(t, `^snowglobe: a cycle of locks: goroutine \d+ waits for a lock of goroutine \d+, `+
		`which waits for a lock of goroutine \d+

goroutine \d+ \[sync.Mutex.Lock \(durable\), synctest bubble 1\]:
`, out)
	message, _, _ := strings.Cut(out, "\n")
	pages.Troubleshooting(t, "../..", message)
	assert.Contains(t, out, "panic: deadlock: all goroutines in bubble are blocked")
	out, err = searched(t.Context(), program, sim.Search{}, "left", "1")
	require.Error(t, err)
	out = regexp.MustCompile(`goroutine \d+`).ReplaceAllString(out, "goroutine N")
	before, _, _ := strings.Cut(out, "\npanic: ")
	assert.Equal(t, `left
snowglobe: goroutine N waits for ever: sync.Mutex.Lock (durable), held by goroutine N, which has ended
snowglobe: goroutine N waits for ever: sync.RWMutex.Lock (durable), held by goroutine N, which has ended
snowglobe: goroutine N waits for ever: chan receive (nil chan)
snowglobe: goroutine N waits for ever: sync.RWMutex.RLock (durable), held by goroutine N`, strings.TrimSpace(before))
	pages.Troubleshooting(t, "../..", "snowglobe: goroutine N waits for ever")
}

// TestSpins looks at what is said of goroutines that never block.
func TestSpins(t *testing.T) {
	program := decided(t)
	for workload, functions := range map[string][]string{
		"spin": {"main.spin("}, "yield": {"main.spinYielding(", "main.yieldForEver("},
	} {
		t.Run(workload, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			command := exec.CommandContext(ctx, program, workload, "1")
			out, err := command.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			lines := bufio.NewScanner(out)
			require.True(t, lines.Scan())
			assert.Equal(t, "snowglobe: virtual time has stood still for 4s on the wall, because this goroutine runs "+
				"(a loop that waits for time has to sleep):", lines.Text())
			for len(functions) > 0 && lines.Scan() {
				functions = slices.DeleteFunc(functions, func(f string) bool {
					return strings.HasPrefix(lines.Text(), f)
				})
			}
			assert.Empty(t, functions)
			require.NoError(t, command.Process.Kill())
			assert.Error(t, command.Wait())
		})
	}
}

// TestCounts looks for an order that needs to know how much goroutines still have to do.
func TestCounts(t *testing.T) {
	program := decided(t)
	found := func(variables ...string) int {
		command := exec.CommandContext(t.Context(), program, "rare", "1")
		command.Env = append(append(os.Environ(), sim.Search{Strategy: "surw"}.Environment()...), variables...)
		out, err := command.Output()
		require.NoError(t, err)
		n, err := strconv.Atoi(strings.TrimSpace(string(out)))
		require.NoError(t, err)
		return n
	}
	counts := sim.Counts(filepath.Join(t.TempDir(), "counts"))
	then, err := counts.Then()
	require.NoError(t, err)
	assert.Empty(t, then, "no run has counted yet")
	assert.Less(t, found(), 5)
	found(counts.First()...)
	then, err = counts.Then()
	require.NoError(t, err)
	assert.Greater(t, found(then...), 50)
	assert.Equal(t, found(then...), found(then...))
}

// TestBubbled runs tests that were not written for a bubble.
func TestBubbled(t *testing.T) {
	ownCache(t)
	runIn := func(search sim.Search, seed string) string {
		t.Helper()
		command, err := sim.Test(t.Context(), "-v", "./testdata/bubbled")
		require.NoError(t, err)
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		command.Env = append(append(command.Env, search.Environment()...), sim.SeedVariable+"="+seed)
		require.NoError(t, command.Run(), out.String())
		return out.String()
	}
	out := runIn(sim.Search{Strategy: "pos", Bubble: true}, "1")
	for _, want := range []string{
		"--- PASS: TestSleeps ", "--- PASS: TestSpinners ",
		"--- PASS: TestSubtests ", "--- PASS: TestSubtests/one ", "time passes: true",
		"--- SKIP: TestParallel ", "snowglobe: TestParallel is not runnable in a bubble: it calls t.Parallel\n",
		"--- SKIP: TestOwn ",
		"snowglobe: TestOwn is not runnable in a bubble: it makes one itself; run it without --bubble\n",
		"--- SKIP: TestOutside ",
		"snowglobe: TestOutside is not runnable in a bubble: it waits for something outside: IO wait\n",
		"bubbled.TestOutside.func", // its stack
	} {
		assert.Contains(t, out, want)
	}
	pages.Troubleshooting(t, "../..", "snowglobe: TestParallel is not runnable in a bubble: it calls t.Parallel")
	drawn := regexp.MustCompile(`drawn: \d+`)
	assert.Equal(t, drawn.FindString(out), drawn.FindString(runIn(sim.Search{Strategy: "pos", Bubble: true}, "1")))
	assert.NotEqual(t, drawn.FindString(out), drawn.FindString(runIn(sim.Search{Strategy: "pos", Bubble: true}, "2")))
	assert.Contains(t, runIn(sim.Search{Strategy: "pos"}, "1"), "--- PASS: TestOwn ", "its own bubble has a seed too")
}

// TestEnds runs tests that come to a deadlock, or leave goroutines behind: those after them run as well.
func TestEnds(t *testing.T) {
	ownCache(t)
	runIn := func(search sim.Search) (ends map[string]string, out string) {
		command, err := sim.Test(t.Context(), "-v", "./testdata/ends")
		require.NoError(t, err)
		command.Env = append(append(command.Env, search.Environment()...), sim.SeedVariable+"=1")
		said, err := command.CombinedOutput()
		require.Error(t, err, "TestBlocks fails")
		ends = map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^--- (\w+): (\w+)`).FindAllStringSubmatch(string(said), -1) {
			ends[m[2]] = m[1]
		}
		return ends, string(said)
	}
	for _, leaks := range []bool{false, true} {
		ends, out := runIn(sim.Search{Strategy: "late", Bubble: true, Leaks: leaks})
		leave := map[bool]string{false: "FAIL", true: "PASS"}[leaks]
		assert.Equal(t, map[string]string{
			"TestLeaves": leave, "TestSleeper": leave, "TestBlocks": "FAIL", "TestFails": "FAIL", "TestAfter": "PASS",
		}, ends)
		assert.Contains(t, out, "waits for a lock that it holds itself")
		assert.Contains(t, out, "ends.TestBlocks(") // its stack
		assert.Contains(t, out, ": deadlock: all goroutines in bubble are blocked\n")
		assert.Equal(t, !leaks, strings.Contains(out, "ends.TestLeaves.func1()"))
		assert.Equal(t, leaks, strings.Contains(out, "snowglobe: left behind, waiting for ever: 1 goroutines\n"))
		assert.Equal(t, !leaks, strings.Contains(out, ": deadlock: main bubble goroutine has exited"))
		assert.Contains(t, out, "an assertion")
	}
	pages.Troubleshooting(t, "../..", "snowglobe: left behind, waiting for ever: 1 goroutines")
}
