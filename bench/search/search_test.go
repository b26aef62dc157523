package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/sample"
)

// TestMain is also the kernels of TestRow, which fail from some seed of each row on.
func TestMain(m *testing.M) {
	name, isKernel := strings.CutSuffix(filepath.Base(os.Args[0]), "-kernel.test")
	if !isKernel {
		os.Exit(m.Run())
	}
	seed, err := strconv.Atoi(os.Getenv(sim.SeedVariable))
	bubble := os.Getenv("SNOWGLOBE_BUBBLE") != ""
	if err != nil || !bubble && name != "own" {
		os.Exit(3)
	}
	switch {
	case name == "parallel" && bubble:
		fmt.Println("snowglobe: TestParallel is not runnable in a bubble: it calls t.Parallel")
	case name == "own" && bubble:
		fmt.Println("snowglobe: TestOwn is not runnable in a bubble: it makes one itself; run it without --bubble")
	case name == "leaks" && os.Getenv("SNOWGLOBE_LEAKS") != "":
		fmt.Println("snowglobe: left behind, waiting for ever: 1 goroutines")
	case name == "never" || seed%rowsApart < 3:
	case name == "endless":
		fmt.Println("panic: test timed out after 6s")
		os.Exit(2)
	case name == "blocked":
		fmt.Println("panic: deadlock: all goroutines in bubble are blocked")
		os.Exit(2)
	default:
		os.Exit(1)
	}
	os.Exit(0)
}

func TestRow(t *testing.T) {
	folder := t.TempDir()
	program, err := os.Executable()
	require.NoError(t, err)
	report := Report{Kernels: []string{"blocked-kernel", "endless-kernel", "fails-kernel", "never-kernel"}, Runs: 4}
	for _, name := range report.Kernels {
		require.NoError(t, os.Symlink(program, filepath.Join(folder, name+".test")))
	}
	options := Options{Strategies: []string{"pos"}, Runs: 4, Repeats: 2, Progress: io.Discard}
	m := measurement{Options: options, binaries: binaries{folder}, report: &report}
	require.NoError(t, m.row(t.Context(), "pos", 0))
	require.NoError(t, m.row(t.Context(), "pos", 1))
	require.NoError(t, m.repeat(t.Context()))
	require.Len(t, report.Strategies, 1)
	assert.Equal(t, map[string][]int{
		"blocked-kernel": {3, 3}, "fails-kernel": {3, 3},
		"endless-kernel": {Endless, Endless}, "never-kernel": {Missed, Missed},
	}, report.Strategies[0].First)
	assert.Equal(t, map[string]int{deadlock: 2, broken: 2}, report.Strategies[0].Told)
	assert.Equal(t, map[string]int{"blocked-kernel": 2, "fails-kernel": 2}, report.Repeated)
	same, err := m.binaries.kernel("never-kernel").sameRuns(t.Context(), m.search(), 1, 2)
	require.NoError(t, err)
	assert.Zero(t, same, "what does not fail is not repeated")
	all := report.Strategies[0].Summary()
	assert.Equal(t, "2, 6, 3, 3, 50",
		fmt.Sprintf("%s, %s, %d, %s, %d", all.Found, all.Sum, all.Median, all.Worst, all.Deadlocks))
	assert.Equal(t, map[string]int{"endless-kernel": 2}, all.Endless)
	assert.Equal(t, map[string]int{"never-kernel": 2}, all.Missed)

	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("enough"))
	require.ErrorContains(t, m.row(ended, "walk", 0), "enough")
}

// twoLocks is a kernel that only a search finds, as GoBench has them.
const twoLocks = `package two

import (
	"sync"
	"testing"
)

func TestTwo(t *testing.T) {
	var first, second sync.Mutex
	var all sync.WaitGroup
	all.Go(func() { first.Lock(); second.Lock(); second.Unlock(); first.Unlock() })
	all.Go(func() { second.Lock(); first.Lock(); first.Unlock(); second.Unlock() })
	all.Wait()
}
`

// TestMeasure builds a kernel in sim mode and finds its bug.
func TestMeasure(t *testing.T) {
	sample.Long(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	folder := t.TempDir()
	kernel := filepath.Join(folder, "gobench", "goker", "blocking", "two", "1")
	require.NoError(t, write(kernel, "two_test.go", twoLocks))
	report, err := Measure(t.Context(), Options{
		Kernels: folder, Strategies: []string{"pos", "random", "surw"}, Runs: 30, Firsts: 1, Repeats: 3,
		Progress: t.Output(),
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"two1"}, report.Kernels)
	assert.Positive(t, report.Strategies[0].First["two1"][0])
	assert.Equal(t, []int{Missed}, report.Strategies[1].First["two1"])
	assert.Positive(t, report.Strategies[2].First["two1"][0])
	assert.Equal(t, map[string]int{"two1": 3}, report.Repeated)
}

// TestKernels finds those in Go's own source, and says where others are if there are none.
func TestKernels(t *testing.T) {
	all, err := kernels(t.Context(), "")
	require.NoError(t, err)
	assert.Greater(t, len(all), 60)
	named, err := Kernels(t.Context(), "")
	require.NoError(t, err)
	assert.Len(t, named, len(all))
	assert.Contains(t, named, "etcd7492")
	_, err = kernels(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "git clone https://github.com/timmyyuan/gobench")
}

func TestFixed(t *testing.T) {
	k := kernel{"k1", map[string]string{"kernel_test.go": "a b a"}}
	mended, err := k.fixed(fix{"k1", []replacement{{"b", "c"}}})
	require.NoError(t, err)
	assert.Equal(t, kernel{"k1-fixed", map[string]string{"kernel_test.go": "a c a"}}, mended)
	_, err = k.fixed(fix{"k1", []replacement{{"a", "c"}}})
	require.ErrorContains(t, err, `the fix of k1 expects "a" once, and it is there 2 times`)
	_, err = fixedKernels([]kernel{k})
	require.ErrorContains(t, err, "there is no kernel "+fixes[0].kernel)
}

// TestUnderSeeds runs tests of others under five seeds.
func TestUnderSeeds(t *testing.T) {
	folder := t.TempDir()
	program, err := os.Executable()
	require.NoError(t, err)
	for name, want := range map[string]told{
		"never":    {failed: map[uint64]string{}},
		"blocked":  {failed: map[uint64]string{3: deadlock, 4: deadlock, 5: deadlock}},
		"own":      {failed: map[uint64]string{3: broken, 4: broken, 5: broken}, own: true},
		"endless":  {failed: map[uint64]string{3: endless}},
		"leaks":    {failed: map[uint64]string{}, leaks: true},
		"parallel": {failed: map[uint64]string{}, notRunnable: "it calls t.Parallel"},
	} {
		require.NoError(t, os.Symlink(program, filepath.Join(folder, name+"-kernel.test")))
		search := sim.Search{Bubble: true, Leaks: true}
		found, err := binaries{folder}.kernel(name+"-kernel").underSeeds(t.Context(), search, 5)
		require.NoError(t, err)
		assert.Equal(t, want, found, name)
	}
}

// TestMeasureTests runs the tests of a package in a bubble.
func TestMeasureTests(t *testing.T) {
	sample.Long(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	report, err := MeasureTests(t.Context(), []string{"../../envtest/sim/testdata/ends"}, 2, t.Output())
	require.NoError(t, err)
	require.Len(t, report.Tests.Packages, 1)
	of := report.Tests.Packages[0]
	assert.Equal(t, 5, of.InBubble())
	assert.Equal(t, []string{"TestFails", "TestLeaves", "TestSleeper"}, of.Leaks)
	assert.Equal(t, map[string]map[uint64]string{
		"TestBlocks": {1: deadlock, 2: deadlock}, "TestFails": {1: broken, 2: broken},
	}, of.Failing)
	var text bytes.Buffer
	report.WriteText(&text)
	assert.Contains(t, text.String(), "TestBlocks fails under 2 of 2 seeds: "+
		"snowglobe test --seed 1 --strategy late --bubble --allow-leaks -run '^TestBlocks$' ")
	_, err = MeasureTests(t.Context(), []string{"./page"}, 2, t.Output())
	require.ErrorContains(t, err, "go list")
}

// TestPageKeeps keeps what a page has of kernels when tests are measured anew, and of tests when kernels are.
func TestPageKeeps(t *testing.T) {
	folder := t.TempDir()
	tests := func(n int) *Tests { return &Tests{Packages: []Package{{Path: "a/b", Functions: n}}} }
	require.NoError(t, Report{Tests: tests(1)}.WritePage(folder))
	kernels := newReport(Options{}, []kernel{{name: "k1"}})
	kernels.strategy("pos").First["k1"] = []int{3}
	require.NoError(t, kernels.WritePage(folder))
	require.NoError(t, Report{Tests: tests(2)}.WritePage(folder))
	page, err := os.ReadFile(filepath.Join(folder, pageFile))
	require.NoError(t, err)
	assert.Contains(t, string(page), "| pos | 1 | 3 |")
	assert.Contains(t, string(page), "| a/b of  | 2 | 2 | 0 | 0 |")
	require.NoError(t, os.WriteFile(filepath.Join(folder, dataFile), []byte("{"), 0o600))
	require.ErrorContains(t, kernels.WritePage(folder), dataFile)
	require.ErrorContains(t, CheckPage(folder), dataFile)
	require.NoError(t, CheckPage(t.TempDir()))
}

// TestPage holds the page to its data, and asks that each failure has been looked at.
func TestPage(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("../../docs", dataFile))
	require.NoError(t, err)
	var report Report
	require.NoError(t, json.Unmarshal(data, &report))
	folder := t.TempDir()
	require.NoError(t, report.WritePage(folder))
	if report.Tests != nil {
		for _, of := range report.Tests.Packages {
			for name := range of.Failing {
				assert.NotEqual(t, notLooked, lookedAt(of.Path, name), "looked.go: %s.%s", of.Path, name)
			}
		}
	}
	for _, name := range []string{pageFile, dataFile} {
		want, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("../../docs", name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "docs/%s: snowglobe bench search --page docs writes it", name)
	}
}
