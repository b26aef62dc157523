package measure

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Timing is one quantity, measured several times.
type Timing struct {
	Median  time.Duration   `json:"medianNS"`
	Min     time.Duration   `json:"minNS"`
	Max     time.Duration   `json:"maxNS"`
	Samples []time.Duration `json:"samplesNS"` // in the order they were taken
}

// NewTiming summarizes samples. It returns the zero value if there are none.
func NewTiming(samples []time.Duration) Timing {
	if len(samples) == 0 {
		return Timing{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return Timing{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1], Samples: samples}
}

// Ratio is the ratio of the medians, 0 if there is nothing to compare with.
func (t Timing) Ratio(to Timing) float64 {
	if to.Median == 0 {
		return 0
	}
	return float64(t.Median) / float64(to.Median)
}

// Row formats the timing as columns of a table.
func (t Timing) Row() string {
	if len(t.Samples) == 0 {
		return "-\t-\t-\t0"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d", Round(t.Median), Round(t.Min), Round(t.Max), len(t.Samples))
}

// WriteBenchmark writes one line for each sample, so that benchstat sees their spread.
func (t Timing) WriteBenchmark(w io.Writer, name string, gomaxprocs int) {
	for _, sample := range t.Samples {
		fmt.Fprintf(w, "Benchmark%s-%d\t1\t%d ns/op\n", name, gomaxprocs, sample.Nanoseconds())
	}
}

// Round keeps three or four digits; a measurement is not more precise.
func Round(d time.Duration) time.Duration {
	for unit := time.Second; unit > 1; unit /= 10 {
		if d >= 10*unit {
			return d.Round(unit / 100)
		}
	}
	return d
}
