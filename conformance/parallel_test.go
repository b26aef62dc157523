package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/suite"
)

// sleepers are cases that take a second each, and count how many run at a time.
func sleepers(n int, atOnce func(id string, running int32)) []suite.Case {
	var running atomic.Int32
	var cases []suite.Case
	for i := range n {
		id := fmt.Sprint(i)
		cases = append(cases, made(id, suite.Needs{}, func(context.Context, *suite.T) {
			running.Add(1)
			time.Sleep(time.Second)
			atOnce(id, running.Load())
			time.Sleep(time.Second)
			running.Add(-1)
		}))
	}
	return cases
}

func order(report engine.Report) []string {
	var ids []string
	for _, result := range report.Results {
		ids = append(ids, result.Case.ID)
	}
	return ids
}

func TestParallel(t *testing.T) {
	for parallel, want := range map[int]time.Duration{1: 14 * time.Second, 2: 8 * time.Second, 100: 4 * time.Second} {
		cases := sleepers(7, func(id string, running int32) {
			if id == "3" {
				assert.EqualValues(t, 1, running, "cases beside one that is serial, with %d at a time", parallel)
			} else {
				assert.EqualValues(t, min(parallel, 6), running, "cases at a time")
			}
		})
		cases[3].Serial = true
		report, err := engine.Simulate(t.Context(), nowhere{}, cases, nil, engine.Parallel(parallel))
		require.NoError(t, err)
		assert.Equal(t, 7, report.Count(engine.Passed))
		assert.Equal(t, want, report.Took, "%d at a time", parallel)
		assert.Equal(t, parallel > 1, order(report)[6] == "3", "a serial case runs last, if others would run beside it: %v", order(report))
	}
}

// TestApart has cases that are apart from each other run one after another, beside the others.
func TestApart(t *testing.T) {
	for word, want := range map[string]time.Duration{"same": 6 * time.Second, "": 2 * time.Second} {
		cases := sleepers(5, func(string, int32) {})
		for _, i := range []int{0, 2, 4} {
			cases[i].Apart = word
		}
		report, err := engine.Simulate(t.Context(), nowhere{}, cases, nil, engine.Parallel(100))
		require.NoError(t, err)
		assert.Equal(t, 5, report.Count(engine.Passed))
		assert.Equal(t, want, report.Took, "apart: %q", word)
	}
}

// TestWaits has a case that waits long begin first, unless cases run one at a time.
func TestWaits(t *testing.T) {
	for parallel, want := range map[int]string{1: "0", 2: "6"} {
		cases := sleepers(7, func(string, int32) {})
		cases[6].Waits = true
		report, err := engine.Simulate(t.Context(), nowhere{}, cases, nil, engine.Parallel(parallel))
		require.NoError(t, err)
		assert.Contains(t, order(report)[:parallel], want, "%d at a time", parallel)
	}
}

func TestShuffled(t *testing.T) {
	cases := sleepers(20, func(string, int32) {})
	run := func(seed int64) []string {
		report, err := engine.Simulate(t.Context(), nowhere{}, cases, nil, engine.Shuffled(seed))
		require.NoError(t, err)
		assert.Equal(t, seed, report.Seed)
		return order(report)
	}
	listed, first, again, second := run(0), run(1), run(1), run(2)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, second)
	assert.NotEqual(t, listed, first)
	assert.Equal(t, "0", listed[0])
	slices.Sort(listed)
	slices.Sort(first)
	assert.Equal(t, listed, first)
}
