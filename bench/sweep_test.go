package bench

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/envtest"
)

func TestParseSweep(t *testing.T) {
	sweep, err := ParseSweep("watchers=1, 10,100")
	require.NoError(t, err)
	assert.Equal(t, Sweep{"watchers", []int{1, 10, 100}}, sweep)
	for text, want := range map[string]string{
		"watchers":     "give an option and its values, like watchers=1,10,100",
		"rate=1":       "options are namespaces, objects, payload, selectors, servers, streams, watchers, writers",
		"watchers=1,x": `"x" is no number above 0`,
		"watchers=0":   `"0" is no number above 0`,
	} {
		_, err := ParseSweep(text)
		assert.ErrorContains(t, err, want, text)
	}
}

// TestBetween has a search for a number end near it, from above and from below.
func TestBetween(t *testing.T) {
	for _, begin := range []float64{1, 100, 1e6} {
		const highest = 12345
		holds, fails, trials := 0.0, math.Inf(1), 0
		for rate := begin; fails > holds*searchPrecision; rate = between(holds, fails) {
			if trials++; rate <= highest {
				holds = rate
			} else {
				fails = rate
			}
			require.Less(t, trials, maxTrials, "from %g", begin)
		}
		assert.InEpsilon(t, highest, holds, searchPrecision-1, "from %g", begin)
	}
}

// TestWatchSweep has an objective that any rate meets, and one that none does: both searches end.
func TestWatchSweep(t *testing.T) {
	var said bytes.Buffer
	opts := SweepOptions{
		WatchOptions: WatchOptions{Shape: load.Shape{Writers: 2}, Pace: load.Pace{Rate: 1000,
			Duration: 20 * time.Millisecond}, Transport: TransportProcess, Progress: &said},
		Sweep: Sweep{"watchers", []int{1, 3}}, Objective: measure.ShortestLatency,
	}
	report, err := WatchSweep(t.Context(), opts)
	require.NoError(t, err)
	require.Len(t, report.Points, 2)
	for i, point := range report.Points {
		assert.Equal(t, opts.Sweep.Values[i], point.Value)
		assert.Nil(t, point.Best, "nothing is delivered within a microsecond: %+v", point)
		assert.Greater(t, point.Trials, 1, "lower rates are tried")
	}
	assert.Equal(t, attempts, strings.Count(said.String(), "process, json, 3 watchers: 1,000 events/s fails: p99 "))
	assert.Len(t, slices.Collect(strings.Lines(said.String())), report.Points[0].Trials+report.Points[1].Trials,
		"a line for each trial: %s", said.String())
	decodes(t, report)

	for want, wrong := range map[string]SweepOptions{
		`sweep of "": options are `:                             {},
		"watchers=200000, json: 200000 watchers: give a number": {Sweep: Sweep{"watchers", []int{1, 200_000}}},
		"an objective of 1ns: give a time from 1µs to 1m0s":     {Sweep: Sweep{"watchers", []int{1}}, Objective: 1},
	} {
		_, err := WatchSweep(t.Context(), wrong)
		assert.ErrorContains(t, err, want)
	}
}

// TestWatchSweepFinds has an objective that is met by what keeps up, and begins the second search
// with what the first one has found.
func TestWatchSweepFinds(t *testing.T) {
	var said bytes.Buffer
	opts := SweepOptions{
		WatchOptions: WatchOptions{Shape: load.Shape{Writers: 2}, Pace: load.Pace{Rate: 10,
			Duration: 100 * time.Millisecond}, Transport: TransportProcess, Stages: true, Progress: &said},
		Sweep: Sweep{"watchers", []int{1, 2}}, Objective: measure.LongestLatency,
	}
	report, err := WatchSweep(t.Context(), opts)
	require.NoError(t, err)
	require.Len(t, report.Points, 2)
	for _, point := range report.Points {
		require.NotNil(t, point.Best)
		assert.Len(t, point.Best.Stages, len(stages))
	}
	assert.Contains(t, said.String(), fmt.Sprintf("process, json, 2 watchers: %s events/s ",
		results.Count(report.Points[0].Best.DeliveriesPerSecond/2)))
	decodes(t, report)
}

// TestSweepMeetsDefects has a watch lose an event: that is not a rate that is too high.
func TestSweepMeetsDefects(t *testing.T) {
	cp := envtest.Start(t)
	opts := SweepOptions{WatchOptions: small(), Sweep: Sweep{"watchers", []int{3}}}
	opts.Target = cp.Config()
	opts.Target.Wrap(editFirstWatch(func(number int, line string) (string, bool) {
		return pick(number == 7, "", line),
			false
	}))
	_, err := WatchSweep(t.Context(), opts)
	require.ErrorIs(t, err, ErrDelivery)
	assert.ErrorContains(t, err, "watchers=3, json: ")
	assert.ErrorContains(t, err, "missed 1 of 21 events, the first of them number 8")
}
