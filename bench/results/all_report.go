package results

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
)

// The measures, in the order in which they are reported; those of a watch follow the transport.
const (
	MeasureCalibration = "calibration" // a fixed piece of work, which shows how fast the machine is
	MeasureFirstBoot   = "first boot"
	MeasureBoot        = "boot"
	MeasureStop        = "stop"
	MeasureWrite       = "write"
	MeasureList        = "list"
	MeasureWatchList   = "watch list"
	MeasureReset       = "reset"
	MeasureDelivery    = " delivery p50"
	MeasureCPU         = " CPU/million deliveries"
)

var Measures = []string{
	MeasureCalibration, MeasureFirstBoot, MeasureBoot, MeasureStop, MeasureWrite, MeasureList, MeasureWatchList,
	MeasureReset,
	load.TransportProcess + MeasureDelivery, load.TransportProcess + MeasureCPU, load.TransportTLS + MeasureDelivery,
	load.TransportTLS + MeasureCPU,
}

// AllReport is what All has measured.
type AllReport struct {
	Machine measure.Machine `json:"machine"`
	Date    time.Time       `json:"date"`
	Quick   bool            `json:"quick"`
	// Measures have a sample for each round, in the order in which they were taken.
	Measures []Measure `json:"measures"`
	// Changes are those since an older report, if it was compared with one.
	Changes *Changes `json:"changes,omitempty"`
}

// Measure is one quantity. Less is better.
type Measure struct {
	Name string `json:"name"`
	// Samples has one number for each round: the lower quartile of what it has measured repeatedly. The
	// name in JSON says so, so that a report with another statistic is not compared with this one.
	Samples []float64 `json:"lowerQuartilesSeconds"`
}

// Add adds the samples of a round.
func (r *AllReport) Add(found map[string]float64) {
	for _, name := range Measures {
		if _, measured := found[name]; !measured {
			continue
		}
		at := slices.IndexFunc(r.Measures, func(m Measure) bool { return m.Name == name })
		if at < 0 {
			at = len(r.Measures)
			r.Measures = append(r.Measures, Measure{Name: name})
		}
		r.Measures[at].Samples = append(r.Measures[at].Samples, found[name])
	}
}

func (r AllReport) WriteText(w *bytes.Buffer) {
	fmt.Fprintln(w, r.Machine)
	if len(r.Measures) == 0 {
		return
	}
	fmt.Fprintf(w, "%s, %d rounds\n\n", r.Date.Format(time.DateTime), len(r.Measures[0].Samples))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tmedian\tmin\tmax\tsamples")
	for _, m := range r.Measures {
		fmt.Fprintf(table, "%s\t%s\n", m.Name, m.timing().Row())
	}
	table.Flush()
	if r.Changes != nil {
		r.Changes.WriteText(w)
	}
}

func (m Measure) timing() measure.Timing {
	var samples []time.Duration
	for _, s := range m.Samples {
		samples = append(samples, time.Duration(s*float64(time.Second)))
	}
	return measure.NewTiming(samples)
}

func (r AllReport) WriteBenchmark(w *bytes.Buffer) {
	r.Machine.WriteHeader(w)
	for _, m := range r.Measures {
		m.timing().WriteBenchmark(w, "All/"+strings.ReplaceAll(m.Name, " ", "-"), r.Machine.GOMAXPROCS)
	}
}
