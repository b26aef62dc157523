package bench

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/load"
	"snowglobe.test/envtest/trace"
)

// TestStages measures where events spend their time, in this process and apart.
func TestStages(t *testing.T) {
	opts := small()
	opts.Stages, opts.StreamsPerConnection = true, 3
	for _, resource := range []string{"configmaps", "widgets"} {
		opts.Resource = resource
		report, err := Watch(t.Context(), opts)
		require.NoError(t, err)
		require.Len(t, report.Loads, 2)
		for _, load := range report.Loads {
			require.Len(t, load.Stages, len(stages))
			for _, stage := range load.Stages {
				assert.EqualValues(t, 11, stage.Latency.Count, "half of 21 events are of the first object: %s", stage.Name)
			}
			assert.Positive(t, load.Stages[0].Latency.P50)
		}
		text := &bytes.Buffer{}
		report.WriteText(text)
		assert.Contains(t, text.String(), "\ncache and dispatch ")
		decodes(t, report)
	}
}

// TestStagesAddUp has three events pass all points, and one of them late.
func TestStagesAddUp(t *testing.T) {
	s := &sampler{resource: "configmaps", passed: map[string][]time.Time{}}
	due := time.Now()
	var events []load.SampledEvent
	for number := range 3 {
		due := due.Add(time.Duration(number) * time.Second)
		at := due
		for _, stage := range stages[:len(stages)-1] {
			if at = at.Add(time.Millisecond); number == 1 && stage.name == "commit" {
				at = at.Add(time.Second)
			}
			if stage.point == writing { // after that of another object
				s.record(trace.Record{Time: at.Add(-time.Hour), Event: trace.Fault{Phase: trace.Held, Point: writing}})
			}
			s.record(trace.Record{Time: at, Event: trace.Fault{Phase: trace.Held, Point: s.point(stage.point)}})
		}
		events = append(events, load.SampledEvent{Due: due, Arrived: at.Add(2 * time.Millisecond)})
	}
	sums, err := s.sum(events)
	require.NoError(t, err)
	for _, stage := range sums {
		longest := map[string]time.Duration{"commit": 1001 * time.Millisecond, "write and read": 2 * time.Millisecond}[stage.Name]
		assert.InEpsilon(t, max(longest, time.Millisecond), stage.Latency.Max, 0.001, stage.Name)
	}
	_, err = s.sum(append(events, events...))
	require.ErrorContains(t, err, "3 of 6 events passed http/patch")
}
