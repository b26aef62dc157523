package results

import (
	"bytes"
	"fmt"
	"text/tabwriter"
	"time"

	"snowglobe.test/bench/measure"
)

// SweepReport is the result of a sweep.
type SweepReport struct {
	Machine   measure.Machine   `json:"machine"`
	Against   *measure.Binaries `json:"against,omitempty"` // what was measured in turn
	Date      time.Time         `json:"date"`
	Option    string            `json:"option"`
	Objective time.Duration     `json:"objectiveNS"` // of the 99th percentile
	Points    []SweepPoint      `json:"points"`
}

// SweepPoint is what was found for one value.
type SweepPoint struct {
	Value     int    `json:"value"`
	Transport string `json:"transport"`
	Encoding  string `json:"encoding"`
	Round     int    `json:"round"` // counted from 1
	Trials    int    `json:"trials"`
	// Best is the load with the highest rate that met the objective; nil if none did.
	Best *WatchLoad `json:"best"`

	within time.Duration // the objective, where it is not that of the report
}

func (r SweepReport) WriteText(w *bytes.Buffer) {
	fmt.Fprintln(w, r.Machine)
	if len(r.Points) == 0 {
		return
	}
	fmt.Fprintf(w, "the highest rate at which p99 is at most %s\n\n", r.Objective)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "transport\tencoding\t%s\tevents/s\tdeliveries/s\tp50\tp99\tp99.9\tserver's "+
		"CPU/million\tmemory/watch\n", r.Option)
	for _, p := range r.Points {
		if p.Best == nil {
			fmt.Fprintf(table, "%s\t%s\t%d\t-\t-\t-\t-\t-\t-\t-\n", p.Transport, p.Encoding, p.Value)
			continue
		}
		l := p.Best
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s", p.Transport, p.Encoding, p.Value, Count(l.RateAsked),
			Count(l.DeliveriesPerSecond),
			measure.Round(l.Latency.P50), measure.Round(l.Latency.P99), measure.Round(l.Latency.P999))
		if l.Server != nil {
			fmt.Fprintf(table, "\t%s\t%s", measure.Round(l.Server.CPUPerMillion), kib(l.Server.MemoryPerWatch))
		} else {
			fmt.Fprint(table, "\t-\t-")
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}

func (r SweepReport) WriteBenchmark(w *bytes.Buffer) {
	report := WatchReport{Machine: r.Machine}
	for _, p := range r.Points {
		if p.Best != nil {
			report.Loads = append(report.Loads, *p.Best)
		}
	}
	report.WriteBenchmark(w)
}
