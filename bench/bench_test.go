package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/bench/startup"
	"snowglobe.test/envtest"
)

// BenchmarkStartup measures every further control plane of a process.
func BenchmarkStartup(b *testing.B) {
	for _, store := range []string{measure.StoreMemory, measure.StoreEmbedded} {
		b.Run("store="+store, func(b *testing.B) {
			request := startup.Request{Store: store}
			_, _, err := request.Boot(b.Context(), 1)
			require.NoError(b, err) // don't count the first boot
			var starts, stops time.Duration
			for b.Loop() {
				start, stop, err := request.Boot(b.Context(), 1)
				require.NoError(b, err)
				starts, stops = starts+start, stops+stop
			}
			b.ReportMetric(float64(starts)/float64(b.N), "boot-ns/op")
			b.ReportMetric(float64(stops)/float64(b.N), "stop-ns/op")
		})
	}
}

// BenchmarkFirstBoot measures the first control plane of a process, each in a process
// of its own.
func BenchmarkFirstBoot(b *testing.B) {
	for _, store := range []string{measure.StoreMemory, measure.StoreEmbedded} {
		b.Run("store="+store, func(b *testing.B) {
			var sum time.Duration
			for b.Loop() {
				answer, err := startup.Run(b.Context(), startup.Request{Store: store, Boots: 1})
				require.NoError(b, err)
				sum += answer.Starts[0]
			}
			b.ReportMetric(float64(sum)/float64(b.N), "boot-ns/op")
		})
	}
}

// BenchmarkWatch measures watch fan-out at a fixed rate. One operation is one event,
// written and delivered to all watchers. Time per operation is that rate, not a cost;
// look at the latencies and allocations.
func BenchmarkWatch(b *testing.B) {
	const rate = 100 // two CPUs keep up with it
	cp := envtest.Start(b, envtest.WithListener("127.0.0.1:0"))
	remote := cp.Config(envtest.User("snowglobe-bench", "system:masters"), envtest.Remote())
	for _, transport := range []string{TransportProcess, TransportTLS} {
		config := cp.Config()
		if transport == TransportTLS {
			config = remote
		}
		for _, watchers := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%s/watchers=%d", transport, watchers), func(b *testing.B) {
				opts := WatchOptions{Shape: load.Shape{Watchers: watchers},
					Pace: load.Pace{Rate: rate, Duration: time.Duration(b.N) * time.Second / rate}, Target: config}
				report, err := Watch(b.Context(), opts)
				require.NoError(b, err)
				load := report.Loads[0]
				for _, m := range results.MetricsOf(load) {
					b.ReportMetric(m.Value, m.Unit)
				}
			})
		}
	}
}
