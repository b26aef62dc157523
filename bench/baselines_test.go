package bench

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/envtest"
)

// TestBaselines has each baseline deliver what an API server does, with the same loads.
func TestBaselines(t *testing.T) {
	for name, opts := range map[string]WatchOptions{
		"json": {Shape: load.Shape{Watchers: 3, Writers: 2}},
		"protobuf, embedded": {Shape: load.Shape{Watchers: 3, Writers: 2, Resource: "pods", Encoding: "protobuf",
			Store: measure.StoreEmbedded}},
		"cbor, decoded in process": {Shape: load.Shape{Watchers: 3, Writers: 2, Resource: "leases", Encoding: "cbor"}},
		"selected": {Shape: load.Shape{Watchers: 6, Writers: 7, Namespaces: 2, Selectors: 3,
			StreamsPerConnection: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Rate, opts.Duration = small().Rate, small().Duration
			opts.Transport, opts.Baselines = TransportProcess, true
			report, err := Watch(t.Context(), opts)
			require.NoError(t, err)
			var hosts []string
			for _, load := range report.Loads {
				hosts = append(hosts, load.Transport)
				assert.Equal(t, 21*opts.Watchers/max(1, opts.Namespaces*opts.Selectors), load.Deliveries, "%+v", load)
				assert.Zero(t, load.Lost+load.Duplicates+load.Reordered+load.Foreign+load.Restarts, "defects: %+v",
					load)
				assert.Equal(t, load.Transport == BaselineHTTP2, load.Server.Apart, "%+v", load.Server)
				assert.Positive(t, load.Latency.P50, "%+v", load)
			}
			assert.Equal(t, []string{"process", "store", "cacher", "http2"}, hosts)
		})
	}
}

// TestBesidePeer measures ours and another API server in turn.
func TestBesidePeer(t *testing.T) {
	cp := envtest.Start(t)
	opts := small()
	opts.Transport, opts.Peer, opts.Profile = TransportProcess, cp.Config(), t.TempDir()
	report, err := Watch(t.Context(), opts)
	require.NoError(t, err)
	var turns []string
	for _, load := range report.Loads {
		turns = append(turns, fmt.Sprint(load.Transport, " ", load.Round))
	}
	assert.Equal(t, []string{"process 1", "peer 1", "process 2", "peer 2"}, turns)
	nothingLeft(t, cp.Config())
	for _, what := range []string{"cpu", "allocs-before", "allocs"} {
		assert.FileExists(t, filepath.Join(opts.Profile, "process-"+what+".pprof"))
	}
}
