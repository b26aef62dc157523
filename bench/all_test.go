package bench

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/results"
)

// TestAll measures everything once, and keeps what it has when it is interrupted in the second round.
func TestAll(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var said strings.Builder
	progress := writerFunc(func(line []byte) {
		said.Write(line)
		interrupt()
	})
	report, err := All(ctx, AllOptions{Quick: true, Rounds: 3, Progress: progress})
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, said.String(), "round 1 of 3: ")
	require.Len(t, report.Measures, len(results.Measures))
	for i, m := range report.Measures {
		assert.Equal(t, results.Measures[i], m.Name)
		require.Len(t, m.Samples, 1)
		assert.Positive(t, m.Samples[0], m.Name)
	}
	decodes(t, report)
	text := &bytes.Buffer{}
	report.WriteBenchmark(text)
	assert.Contains(t, text.String(), "\nBenchmarkAll/tls-CPU/million-deliveries-")
}

// TestInjectedSlowdown has a write take a hundred times as long, and not the calibration.
func TestInjectedSlowdown(t *testing.T) {
	r := &allRound{opts: AllOptions{InjectedSlowdown: 99}, took: map[string][]time.Duration{}}
	for _, name := range []string{results.MeasureWrite, results.MeasureCalibration} {
		require.NoError(t, r.timed(name, 5, func() error {
			time.Sleep(2 * time.Millisecond)
			return nil
		}))
	}
	assert.GreaterOrEqual(t, r.samples()[results.MeasureWrite], 0.2)
	assert.Less(t, r.samples()[results.MeasureCalibration], 0.2)
}

// TestAllRefuses measures nothing for options that make no sense.
func TestAllRefuses(t *testing.T) {
	for want, opts := range map[string]AllOptions{
		"-1 rounds: give a number from 1 to 1000":                             {Rounds: -1},
		"there is no part \"reads\" to measure; use startup, requests, watch": {Only: []string{"reads"}},
		"an injected slowdown of -1: give a share of the time":                {InjectedSlowdown: -1},
	} {
		report, err := All(t.Context(), opts)
		require.ErrorContains(t, err, want)
		assert.Empty(t, report.Measures)
	}
}
