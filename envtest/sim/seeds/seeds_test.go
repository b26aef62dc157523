package seeds_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/sim/seeds"
)

func TestParseRange(t *testing.T) {
	for text, want := range map[string]seeds.Range{
		"1": {1, 1}, "100": {1, 100}, "20-30": {20, 30}, "0-0": {0, 0}, "7-18446744073709551615": {7, ^uint64(0)},
	} {
		got, err := seeds.ParseRange(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
		again, err := seeds.ParseRange(got.String())
		require.NoError(t, err)
		assert.Equal(t, want, again)
	}
	for _, text := range []string{"", "0", "x", "5-", "-5", "9-8", "1-2-3", "1,2"} {
		_, err := seeds.ParseRange(text)
		assert.ErrorContains(t, err, "say how many, as in 100, or from which to which, as in 20-30", text)
	}
}

// searchVariable makes the tests of this process do what seeds are searched for.
const searchVariable = "SNOWGLOBE_TEST_SEARCH"

var errEarlier = errors.New("") // what TestSearchedEarlier changes, as upstream's caches are

func searched(t *testing.T) (seed uint64) {
	t.Helper()
	if os.Getenv(searchVariable) == "" {
		t.Skip("it is for other tests to run")
	}
	seed, given, err := sim.GivenSeed()
	require.NoError(t, err)
	require.True(t, given)
	return seed
}

func TestSearchedThree(t *testing.T) {
	assert.NotEqual(t, uint64(3), searched(t)%10, "the seed ends in 3")
}

func TestSearchedEarlier(t *testing.T) {
	searched(t)
	errEarlier = nil
}

func TestSearchedLater(t *testing.T) {
	if searched(t)%10 == 4 {
		require.Error(t, errEarlier, "the seed ends in 4, and another test ran before")
	}
}

func TestSearchedHang(t *testing.T) {
	if searched(t)%10 == 5 {
		<-t.Context().Done()
	}
}

func TestSearchedRefused(t *testing.T) {
	searched(t)
	fmt.Fprintln(os.Stderr, "snowglobe: TestX is not runnable in a bubble: it calls t.Parallel")
}

// TestSearchedCounted fails under an odd seed if a run has counted before.
func TestSearchedCounted(t *testing.T) {
	seed := searched(t)
	if file := os.Getenv("SNOWGLOBE_COUNT"); file != "" {
		require.NoError(t, os.WriteFile(file, append(bytes.Repeat([]byte{1}, 8), make([]byte, 16)...), 0o600))
		return
	}
	text, err := os.ReadFile(os.Getenv("SNOWGLOBE_COUNTS"))
	require.NoError(t, err)
	assert.True(t, seed%2 == 0 || len(text) != 24, "the seed is odd")
}

// refused are the tests that the last result of a search has named.
var refused []string

// search runs these tests under seeds, two at a time.
func search(t *testing.T, all seeds.Range, args ...string) (failed []seeds.Result, ran int, out string, err error) {
	t.Helper()
	t.Setenv(searchVariable, "1")
	program, err := os.Executable()
	require.NoError(t, err)
	folder, err := os.MkdirTemp("", "seeds") // a socket wants a short name
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(folder)) }()
	s, err := seeds.Begin(t.Context(), folder, 2, func(r seeds.Result) {
		ran++
		assert.Equal(t, "snowglobe.test/envtest/sim/seeds", r.Package)
		refused = r.NotRunnable
		if r.Failed {
			failed = append(failed, r)
		}
	})
	require.NoError(t, err)
	var text bytes.Buffer
	err = seeds.Run(t.Context(), seeds.Binary{Program: program, Args: append(args, "-test.timeout=0s"), Seeds: all, Timeout: 5 * time.Second, Socket: s.Socket()}, &text)
	s.End()
	slices.SortFunc(failed, func(a, b seeds.Result) int { return cmp.Compare(a.Seed, b.Seed) })
	return failed, ran, text.String(), err
}

func TestSearch(t *testing.T) {
	failed, ran, out, err := search(t, seeds.Range{First: 0, Last: 19}, "-test.run=^TestSearched(Three|Earlier|Later)$", "-test.v=false")
	require.ErrorIs(t, err, seeds.ErrFailed)
	assert.Equal(t, 20, ran)
	require.Len(t, failed, 4)
	for i, want := range []struct {
		seed  uint64
		test  string
		alone bool
	}{{3, "TestSearchedThree", true}, {4, "TestSearchedLater", false}, {13, "TestSearchedThree", true}, {14, "TestSearchedLater", false}} {
		assert.Equal(t, want.seed, failed[i].Seed)
		assert.Equal(t, []string{want.test}, failed[i].Tests)
		assert.Equal(t, want.alone, failed[i].Alone)
	}
	assert.Contains(t, out, "=== seed 13\n--- FAIL: TestSearchedThree ")
	assert.NotContains(t, out, "=== seed 12")
}

func TestSearchRefused(t *testing.T) {
	_, ran, _, err := search(t, seeds.Range{First: 1, Last: 2}, "-test.run=^TestSearchedRefused$")
	require.NoError(t, err)
	assert.Equal(t, 2, ran)
	assert.Equal(t, []string{"TestX is not runnable in a bubble: it calls t.Parallel"}, refused)
}

// TestSearchCounts has each seed run twice.
func TestSearchCounts(t *testing.T) {
	t.Setenv("SNOWGLOBE_STRATEGY", "surw")
	t.Setenv("TMPDIR", t.TempDir())
	failed, ran, _, err := search(t, seeds.Range{First: 1, Last: 4}, "-test.run=^TestSearchedCounted$")
	require.ErrorIs(t, err, seeds.ErrFailed)
	assert.Equal(t, 4, ran)
	assert.Len(t, failed, 2)
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestSearchPasses(t *testing.T) {
	failed, ran, out, err := search(t, seeds.Range{First: 6, Last: 12}, "-test.run=^TestSearched(Three|Hang)$")
	require.NoError(t, err)
	assert.Equal(t, 7, ran)
	assert.Empty(t, failed)
	assert.Empty(t, out)
}

func TestSearchFailFast(t *testing.T) {
	failed, ran, _, err := search(t, seeds.Range{First: 2, Last: 100_000}, "-test.run=^TestSearchedThree$", "-test.failfast=true")
	require.ErrorIs(t, err, seeds.ErrFailed)
	assert.NotEmpty(t, failed)
	assert.Less(t, ran, 10)
}

// The timeout is for each seed, and names what ran.
func TestSearchTimeout(t *testing.T) {
	failed, _, out, err := search(t, seeds.Range{First: 5, Last: 6}, "-test.run=^TestSearchedHang$")
	require.ErrorIs(t, err, seeds.ErrFailed)
	require.Len(t, failed, 1)
	assert.Equal(t, []string{"TestSearchedHang"}, failed[0].Tests)
	assert.False(t, failed[0].Alone)
	assert.Contains(t, out, "panic: test timed out after 5s")
}

// go test looks for a line that says that there are no tests to run.
func TestSearchNothing(t *testing.T) {
	_, ran, out, err := search(t, seeds.Range{First: 1, Last: 1000}, "-test.run=^Nothing$")
	require.NoError(t, err)
	assert.Less(t, ran, 100)
	assert.Equal(t, "testing: warning: no tests to run\n", out)
}

// Whoever interrupts a search does not wait for it.
func TestSearchInterrupted(t *testing.T) {
	t.Setenv(searchVariable, "1")
	program, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	folder, err := os.MkdirTemp("", "seeds")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(folder)) }()
	s, err := seeds.Begin(t.Context(), folder, 1, func(seeds.Result) { cancel(interrupted) })
	require.NoError(t, err)
	defer s.End()
	var out bytes.Buffer
	err = seeds.Run(ctx, seeds.Binary{Program: program, Args: []string{"-test.run=^TestSearchedHang$"}, Seeds: seeds.Range{First: 1, Last: 100}, Timeout: time.Hour, Socket: s.Socket()}, &out)
	require.ErrorIs(t, err, interrupted)
}
