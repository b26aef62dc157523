package results

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
)

// WatchLoad is one load and its result.
type WatchLoad = load.Result

// WatchReport is the result of measuring watch fan-out.
type WatchReport struct {
	Machine measure.Machine   `json:"machine"`
	Against *measure.Binaries `json:"against,omitempty"` // what was measured in turn
	Loads   []WatchLoad       `json:"loads"`
}

func (r WatchReport) WriteText(w *bytes.Buffer) {
	fmt.Fprintln(w, r.Machine)
	if len(r.Loads) == 0 {
		return
	}
	first := r.Loads[0]
	fmt.Fprintf(w, "%s\n\n", strings.Join(words(first), ", "))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(WatchLoad) string) {
		fmt.Fprintf(table, "%s", name)
		for _, load := range r.Loads {
			fmt.Fprintf(table, "\t%s", cell(load))
		}
		fmt.Fprintln(table)
	}
	row("", func(l WatchLoad) string { return l.Transport })
	if last := r.Loads[len(r.Loads)-1]; last.Round > 1 {
		row("round", func(l WatchLoad) string { return fmt.Sprint(l.Round) })
	}
	row("events/s asked", func(l WatchLoad) string { return fmt.Sprintf("%.0f", l.RateAsked) })
	row("events/s written", func(l WatchLoad) string { return fmt.Sprintf("%.0f", l.Rate) })
	row("events/s delivered", func(l WatchLoad) string { return fmt.Sprintf("%.0f", l.DeliveriesPerSecond) })
	for _, q := range quantiles {
		row("delivery "+q.name, func(l WatchLoad) string { return measure.Round(q.of(l.Latency)).String() })
	}
	for _, q := range quantiles {
		row("write "+q.name, func(l WatchLoad) string { return measure.Round(q.of(l.WriteLatency)).String() })
	}
	if first.GetsObjects() {
		row("initial objects p50", func(l WatchLoad) string { return measure.Round(l.OpenLatency.P50).String() })
		row("initial objects p99", func(l WatchLoad) string { return measure.Round(l.OpenLatency.P99).String() })
	}
	shared := ""
	used := func(name string, cell func(measure.Usage) string) {
		row(name, func(l WatchLoad) string {
			if l.Server == nil {
				return unknown
			}
			text := cell(*l.Server)
			if text != unknown && !l.Server.Apart {
				shared = "\n* of the server and its clients, which were in one process\n"
				return text + "*"
			}
			return text
		})
	}
	used("CPU/million deliveries", func(u measure.Usage) string { return measure.Round(u.CPUPerMillion).String() })
	used("allocations/delivery", func(u measure.Usage) string { return fmt.Sprintf("%.1f", u.AllocsPerDelivery) })
	used("bytes/delivery", func(u measure.Usage) string { return fmt.Sprintf("%.0f", u.BytesPerDelivery) })
	used("memory/watch", func(u measure.Usage) string { return kib(u.MemoryPerWatch) })
	row("lost", func(l WatchLoad) string { return fmt.Sprint(l.Lost) })
	row("duplicate", func(l WatchLoad) string { return fmt.Sprint(l.Duplicates) })
	row("out of order", func(l WatchLoad) string { return fmt.Sprint(l.Reordered) })
	row("not selected", func(l WatchLoad) string { return fmt.Sprint(l.Foreign) })
	row("watches restarted", func(l WatchLoad) string { return fmt.Sprint(l.Restarts) })
	if first.Laggards != nil {
		laggardRows(row)
	}
	table.Flush()
	fmt.Fprint(w, shared)
	r.writeStages(w)
	for _, load := range r.Loads {
		if load.Saturated() {
			fmt.Fprintf(w, "\n%s: fewer events arrived than were asked for. The machine was saturated, so "+
				"the\nlatencies are those of a growing queue: lower the rate or the number of "+
				"watchers.\n", load.Transport)
		}
	}
}

// writeStages writes how long each stage took, where that is known.
func (r WatchReport) writeStages(w *bytes.Buffer) {
	for _, load := range r.Loads {
		if load.Stages == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s, by stage:\n", load.Transport)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "\tp50\tp90\tp99\tmax")
		for _, s := range load.Stages {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.Name, measure.Round(s.Latency.P50),
				measure.Round(s.Latency.P90), measure.Round(s.Latency.P99), measure.Round(s.Latency.Max))
		}
		table.Flush()
	}
}

// laggardRows are what a table of loads says of them; each has some.
func laggardRows(row func(name string, cell func(WatchLoad) string)) {
	of := func(name string, count func(load.Laggards) int) {
		row(name, func(l WatchLoad) string { return fmt.Sprint(count(*l.Laggards)) })
	}
	of("laggards", func(l load.Laggards) int { return l.Slow + l.Stalled })
	of("deliveries to them", func(l load.Laggards) int { return l.Deliveries })
	of("terminated", func(l load.Laggards) int { return l.Terminations })
	of("expired", func(l load.Laggards) int { return l.Expired })
}

// words describe the load, but not its transport.
func words(l WatchLoad) []string {
	words := []string{fmt.Sprintf("watchers %d", l.Watchers), fmt.Sprintf("writers %d", l.Writers),
		fmt.Sprintf("events %d of %d bytes", l.Events, l.PayloadBytes), l.Resource, l.Encoding}
	if l.Decode {
		words = append(words, "decoded")
	}
	l.Spread(func(_, of string, several int) { words = append(words, fmt.Sprintf(of, several)) })
	if l.Objects > 0 {
		words = append(words, fmt.Sprintf("%d more objects", l.Objects))
	}
	if l.GetsObjects() {
		words = append(words, "initial objects by "+l.Initial)
	}
	if l.Compress {
		words = append(words, "compressed")
	}
	if l.Laggards != nil {
		words = append(words, fmt.Sprintf("%d slow", l.Laggards.Slow), fmt.Sprintf("%d stalled", l.Laggards.Stalled))
	}
	if l.Store != "" {
		words = append(words, "store "+l.Store)
	}
	return words
}

// quantiles are the columns of a Latency in the order people read them.
var quantiles = []struct {
	name string
	of   func(measure.Latency) time.Duration
}{
	{"p50", func(l measure.Latency) time.Duration { return l.P50 }},
	{"p90", func(l measure.Latency) time.Duration { return l.P90 }},
	{"p99", func(l measure.Latency) time.Duration { return l.P99 }},
	{"p99.9", func(l measure.Latency) time.Duration { return l.P999 }},
	{"max", func(l measure.Latency) time.Duration { return l.Max }},
}

func (r WatchReport) WriteBenchmark(w *bytes.Buffer) {
	fmt.Fprintln(w, "Unit events/s better=higher")
	r.Machine.WriteHeader(w)
	for _, load := range r.Loads {
		fmt.Fprintf(w, "BenchmarkWatch/%s-%d\t%d", NameOf(load), r.Machine.GOMAXPROCS, load.Deliveries)
		for _, m := range MetricsOf(load) {
			fmt.Fprintf(w, "\t%g %s", m.Value, m.Unit)
		}
		fmt.Fprintln(w)
	}
}

// NameOf is the name of the benchmark that a load is.
func NameOf(l WatchLoad) string {
	name := fmt.Sprintf("transport=%s/watchers=%d/rate=%g/encoding=%s/resource=%s", l.Transport, l.Watchers,
		l.RateAsked, l.Encoding, l.Resource)
	l.Spread(func(flag, _ string, several int) { name += fmt.Sprintf("/%s=%d", flag, several) })
	if l.GetsObjects() {
		name += fmt.Sprintf("/initial=%s/objects=%d/compressed=%t", l.Initial, l.Objects, l.Compress)
	}
	if l.Laggards != nil {
		name += fmt.Sprintf("/slow=%d/stalled=%d", l.Laggards.Slow, l.Laggards.Stalled)
	}
	if l.Decode {
		name += "/decode=true"
	}
	if l.Store != "" {
		name += "/store=" + l.Store
	}
	return name
}

// Metric is a number with the unit of the Go benchmark format.
type Metric struct {
	Value float64
	Unit  string
}

// MetricsOf are the numbers of that benchmark.
func MetricsOf(l WatchLoad) []Metric {
	metrics := []Metric{{float64(l.Latency.Mean), "mean-ns"}}
	for _, q := range quantiles {
		metrics = append(metrics, Metric{float64(q.of(l.Latency)), q.name + "-ns"})
	}
	metrics = append(metrics, Metric{l.DeliveriesPerSecond, "events/s"})
	if l.GetsObjects() {
		metrics = append(metrics, Metric{float64(l.OpenLatency.P50), "open-p50-ns"},
			Metric{float64(l.OpenLatency.P99), "open-p99-ns"})
	}
	if l.Server == nil {
		return metrics
	}
	metrics = append(metrics,
		Metric{l.Server.CPUPerMillion.Seconds(), "cpu-s/million"},
		Metric{l.Server.BytesPerDelivery, "B/delivery"},
		Metric{l.Server.AllocsPerDelivery, "allocs/delivery"})
	if memory := l.Server.MemoryPerWatch; memory != 0 {
		metrics = append(metrics, Metric{float64(memory), "B/watch"})
	}
	return metrics
}
