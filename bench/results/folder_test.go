package results

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
)

var update = flag.Bool("update", false, "write the page of the tests anew")

// TestPublishedPage writes a page from raw data, some of which is missing.
func TestPublishedPage(t *testing.T) {
	ran := func(watchers int, rate float64) *WatchLoad {
		return &WatchLoad{
			Shape:               load.Shape{Watchers: watchers},
			RateAsked:           rate,
			DeliveriesPerSecond: rate * float64(watchers),
			Latency:             measure.Latency{P50: 3 * time.Millisecond, P99: 40 * time.Millisecond},
			Server:              &measure.Usage{CPUPerMillion: 26 * time.Second, MemoryPerWatch: 60 << 10},
		}
	}
	machine := measure.Machine{GOOS: "linux", GOARCH: "amd64", GOMAXPROCS: 2, Go: "go1.26", Kubernetes: "v1.37.1"}
	date := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	curve := SweepReport{
		Machine: machine, Date: date, Option: "watchers", Objective: 50 * time.Millisecond,
		Against: &measure.Binaries{APIServer: "Kubernetes v1.37.1", Etcd: "etcd 3.6"},
		Points: []SweepPoint{
			{Value: 1, Transport: load.TransportProcess, Encoding: "json", Best: ran(1, 2345)},
			{Value: 1, Transport: load.TransportTLS, Encoding: "json", Best: ran(1, 1500)},
			{Value: 1, Transport: load.Stock, Encoding: "json", Best: ran(1, 1000)},
			{Value: 1, Transport: load.BaselineStore, Encoding: "json", Best: ran(1, 98765)},
			{Value: 1000, Transport: load.TransportProcess, Encoding: "json", Best: ran(1000, 30)},
			{Value: 1000, Transport: load.TransportTLS, Encoding: "json"},
			{Value: 1000, Transport: load.Stock, Encoding: "json", Best: ran(1000, 14)},
			{Value: 1000, Transport: load.BaselineStore, Encoding: "json", Best: ran(1000, 400)},
			{Value: 10_000, Transport: load.TransportTLS, Encoding: "json"}, // measured anew with many
		},
	}
	fewer := SweepReport{Option: "watchers", Points: []SweepPoint{
		{Value: 10, Transport: load.TransportProcess, Encoding: "cbor", Best: ran(10, 300)},
		{Value: 10, Transport: load.Stock, Encoding: "cbor", Best: ran(10, 200)},
	}}
	stages := ran(1000, 10)
	stages.Transport, stages.Stages = load.TransportTLS, []load.Stage{{Name: "commit",
		Latency: measure.Latency{P50: 20 * time.Microsecond, P99: time.Millisecond}}}
	memory := ran(10_000, 1)
	memory.Transport = load.Stock
	parts := map[string]any{
		"json": curve,
		"cbor": fewer,
		PartMany: SweepReport{Objective: time.Second, Points: []SweepPoint{
			{Value: 10_000, Transport: load.TransportProcess, Encoding: "json", Best: ran(10_000, 4)},
			{Value: 10_000, Transport: load.Stock, Encoding: "json", Best: ran(10_000, 1.5), Round: 1},
			{Value: 10_000, Transport: load.Stock, Encoding: "json", Best: ran(10_000, 2), Round: 2},
			{Value: 10_000, Transport: load.TransportProcess, Encoding: "protobuf", Best: ran(10_000, 3)},
		}},
		PartMemory: WatchReport{Loads: []WatchLoad{*memory}},
		PartMost: SweepReport{Machine: machine, Points: []SweepPoint{
			{Value: 100_000, Transport: load.TransportProcess, Best: ran(100_000, 0.4)},
			{Value: 200_000, Transport: load.TransportProcess},
		}},
		PartShares: SharesReport{Loads: []SharesLoad{{*stages,
			[]measure.CPUShare{{Part: "HTTP/2 and TLS", Self: 0.55, Total: 0.61}}}}},
	}
	folder := Folder(t.TempDir())
	require.NoError(t, os.Mkdir(folder.data(), 0o755))
	for part, data := range parts {
		require.NoError(t, folder.Keep(part, data))
	}
	require.NoError(t, folder.Write())
	page, err := os.ReadFile(folder.Page())
	require.NoError(t, err)
	golden := filepath.Join("testdata", "performance.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, page, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(page), "if it should be so, run: go test ./bench/results -run "+
		"TestPublishedPage -update")
	plot, err := os.ReadFile(filepath.Join(folder.data(), "json.svg"))
	require.NoError(t, err)
	assert.Contains(t, string(plot), "<svg")
}

// TestPerformanceIsFresh compares docs/PERFORMANCE.md and its plots with the raw data beside them.
func TestPerformanceIsFresh(t *testing.T) {
	docs := Folder(filepath.Join("..", "..", "docs"))
	fresh := Folder(t.TempDir())
	require.NoError(t, os.Mkdir(fresh.data(), 0o755))
	for _, part := range PublishParts {
		text, err := os.ReadFile(docs.File(part))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has not been measured
		}
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(fresh.File(part), text, 0o644))
	}
	require.NoError(t, fresh.Write())
	written, err := fs.Glob(os.DirFS(string(fresh)), "performance/*.svg")
	require.NoError(t, err)
	for _, name := range append(written, "PERFORMANCE.md") {
		want, err := os.ReadFile(filepath.Join(string(fresh), name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(string(docs), name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s is stale; run: go run ./cmd/snowglobe bench publish docs --keep",
			name)
	}
}

// TestPublishManyAlone has no curve to put the points of many watchers at the end of.
func TestPublishManyAlone(t *testing.T) {
	folder := Folder(t.TempDir())
	require.NoError(t, os.Mkdir(folder.data(), 0o755))
	require.NoError(t, folder.Keep(PartMany, SweepReport{Option: "watchers", Objective: time.Second,
		Points: []SweepPoint{
			{Value: 5, Transport: load.TransportProcess, Encoding: "json",
				Best: &WatchLoad{Shape: load.Shape{Watchers: 5}, DeliveriesPerSecond: 40}},
		}}))
	require.NoError(t, folder.Write())
	page, err := os.ReadFile(folder.Page())
	require.NoError(t, err)
	assert.Contains(t, string(page), "| 5, within 1s | 40 |")
}

func TestCount(t *testing.T) {
	for n, want := range map[float64]string{0.4: "0.4", 12.34: "12.3", 999: "999", 1000: "1,000", 12_345: "12,300",
		98_765: "98,800", 999_600: "1,000,000"} {
		assert.Equal(t, want, Count(n))
	}
}

// TestBrokenRawData names the file.
func TestBrokenRawData(t *testing.T) {
	broken := Folder(t.TempDir())
	require.NoError(t, os.Mkdir(broken.data(), 0o755))
	require.NoError(t, os.WriteFile(broken.File("json"), []byte("{"), 0o644))
	err := broken.Write()
	assert.ErrorContains(t, err, broken.File("json"))
	var syntax *json.SyntaxError
	assert.ErrorAs(t, err, &syntax)
}
