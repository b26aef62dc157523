package bench

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/load"
	"snowglobe.test/envtest"
)

// TestLaggardsCatchUp has watchers that get all events too, but late: they count apart.
func TestLaggardsCatchUp(t *testing.T) {
	opts := small()
	opts.Watchers, opts.Slow, opts.Stalled, opts.Transport = 4, 0.25, 0.25, TransportProcess
	report, err := Watch(t.Context(), opts)
	require.NoError(t, err)
	got := report.Loads[0]
	assert.Equal(t, 42, got.Deliveries, "those of two watchers")
	assert.EqualValues(t, 42, got.Latency.Count)
	assert.Equal(t, &load.Laggards{Slow: 1, Stalled: 1, Deliveries: 42}, got.Laggards)
	decodes(t, report)
}

// TestStalledIsTerminated has a watcher that reads nothing while so much is written that no buffer
// can hold it: the server ends its watch, and the other one gets everything.
func TestStalledIsTerminated(t *testing.T) {
	for _, transport := range []string{TransportProcess, TransportTLS} {
		t.Run(transport, func(t *testing.T) {
			report, err := Watch(t.Context(), WatchOptions{
				Shape:     load.Shape{Watchers: 2, PayloadBytes: 200_000},
				Pace:      load.Pace{Stalled: 0.5, Rate: 500, Duration: 400 * time.Millisecond},
				Transport: transport,
			})
			require.NoError(t, err)
			load := report.Loads[0]
			assert.Equal(t, 200, load.Deliveries)
			assert.Positive(t, load.Laggards.Terminations)
			assert.Zero(t, load.Restarts, "the watch of the other one was ended")
		})
	}
}

// TestWarmUp counts what is written: of the warm-up nothing is measured.
func TestWarmUp(t *testing.T) {
	cp := envtest.Start(t)
	for warmUp, want := range map[time.Duration]int64{load.NoWarmUp: 21 + 2, 0: 2 + 21 + 2,
		100 * time.Millisecond: 10 + 21 + 2} {
		opts := small()
		opts.WarmUp, opts.Target = warmUp, cp.Config()
		var patches atomic.Int64
		opts.Target.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.Method == http.MethodPatch {
					patches.Add(1)
				}
				return next.RoundTrip(req)
			})
		})
		report, err := Watch(t.Context(), opts)
		require.NoError(t, err, warmUp)
		assert.Equal(t, want, patches.Load(), warmUp)
		assert.EqualValues(t, 63, report.Loads[0].Latency.Count, warmUp)
		assert.EqualValues(t, 21, report.Loads[0].WriteLatency.Count, warmUp)
	}
}
