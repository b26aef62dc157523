package results

import (
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/bench/measure"
	"snowglobe.test/internal/htmlpage"
)

// TestPage writes a page of each report that has one, in folders that are not there yet.
func TestPage(t *testing.T) {
	load := func(rate float64) *WatchLoad {
		return &WatchLoad{DeliveriesPerSecond: rate, Server: &measure.Usage{CPUPerMillion: time.Minute, MemoryPerWatch: 60 << 10}}
	}
	sweep := SweepReport{Option: "watchers", Objective: 50 * time.Millisecond, Points: []SweepPoint{
		{Value: 1, Transport: "tls", Encoding: "json", Best: load(1000)},
		{Value: 10, Transport: "tls", Encoding: "json", Best: load(9000)},
		{Value: 1, Transport: "stock", Encoding: "json", Best: load(900)},
		{Value: 10, Transport: "stock", Encoding: "json"},
	}}
	for name, c := range map[string]struct {
		report  PlottedReport
		figures int
		says    string
	}{
		"all":                  {made(1, 3, nil), len(Measures), `alt="watch list: median `},
		"sweep":                {sweep, 3, `alt="Memory of the server for a watch: `},
		"sweep without points": {SweepReport{Option: "watchers"}, 0, "Watch fan-out by watchers"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "new", "page.html")
			require.NoError(t, WriteHTMLFile(file, c.report))
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, c.figures, strings.Count(string(text), `<img src="data:image/svg`))
			assert.Contains(t, string(text), c.says)
			_, style, _ := strings.Cut(string(text), "<style>")
			style, _, _ = strings.Cut(style, "</style>")
			assert.Contains(t, html.UnescapeString(string(text)), "style-src "+htmlpage.Hash(style)+";")
		})
	}
}

// TestSweepLines has rounds of one value be one point, and leaves out what was not found.
func TestSweepLines(t *testing.T) {
	found := func(rate float64) *WatchLoad { return &WatchLoad{DeliveriesPerSecond: rate} }
	r := SweepReport{Points: []SweepPoint{
		{Value: 10, Transport: "tls", Encoding: "json", Best: found(30)},
		{Value: 1, Transport: "tls", Encoding: "json", Best: found(10), Round: 1},
		{Value: 1, Transport: "tls", Encoding: "json", Best: found(20), Round: 2},
		{Value: 100, Transport: "tls", Encoding: "json"},
		{Value: 1, Transport: "tls", Encoding: "cbor", Best: found(7)},
	}}
	assert.Equal(t, []string{"tls json", "tls cbor"}, r.names())
	line := r.line("tls json", func(l WatchLoad) float64 { return l.DeliveriesPerSecond })
	require.Len(t, line, 2)
	assert.InDelta(t, 15, line[0].Y, 0)
	assert.InDelta(t, 10, line[1].X, 0)
}
