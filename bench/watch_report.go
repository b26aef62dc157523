package bench

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"snowglobe.test/bench/measure"
)

// WatchReport is the result of measuring watch fan-out.
type WatchReport struct {
	Machine measure.Machine   `json:"machine"`
	Against *measure.Binaries `json:"against,omitempty"` // what was measured in turn
	Loads   []WatchLoad       `json:"loads"`
}

// WatchLoad is one load and its result.
type WatchLoad struct {
	Transport string `json:"transport"` // or what else it ran on
	Round     int    `json:"round"`     // counted from 1
	Shape

	RateAsked float64 `json:"rateAsked"` // events/s
	Rate      float64 `json:"rate"`      // events/s that the writers reached
	Events    int     `json:"events"`

	// Deliveries are different events, over all watchers but laggards.
	Deliveries          int     `json:"deliveries"`
	DeliveriesPerSecond float64 `json:"deliveriesPerSecond"`
	// Latency is from when an event was due to be written until a watcher has read it.
	Latency measure.Latency `json:"latency"`
	// OpenLatency is how long it took to open a watch, with all objects that were there if Initial
	// says so.
	OpenLatency measure.Latency `json:"openLatency"`
	// WriteLatency is from the same moment until the writer has the answer.
	WriteLatency measure.Latency `json:"writeLatency"`

	Lost       int `json:"lost"`
	Duplicates int `json:"duplicates"`
	Reordered  int `json:"reordered"`
	Foreign    int `json:"foreign"`  // events that watchers got and had not selected
	Restarts   int `json:"restarts"` // watches that the server ended early
	// TimedOut says that some events had not come when the load had waited for its drain time.
	TimedOut bool `json:"timedOut"`
	// Laggards are in no other number but those of the server; nil if there are none.
	Laggards *Laggards `json:"laggards,omitempty"`

	// Server is what the process of the API server used; nil if that is not known, because it is
	// one whose metrics the user may not read.
	Server *measure.Usage `json:"server,omitempty"`
	// Stages are those of the way of an event, measured in another run of the load; nil if they
	// were not asked for, or the server is not ours.
	Stages []Stage `json:"stages,omitempty"`

	sampled []sampledEvent
}

func (l *load) sum(transport string, written time.Duration) *WatchLoad {
	r := &WatchLoad{
		Transport: transport, Shape: l.opts.Shape, OpenLatency: l.opening.Sum(),
		RateAsked: l.opts.Rate, Rate: float64(l.events) / written.Seconds(), Events: l.events,
		Latency: l.delivery.Sum(), WriteLatency: l.writing.Sum(), TimedOut: l.timedOut,
	}
	r.sampled = l.watchers[0].sampled
	var newest time.Duration
	for _, w := range l.watchers {
		r.Duplicates += w.tally.duplicates
		r.Reordered += w.tally.reordered
		r.Foreign += w.tally.foreign
		if w.pace != paceFull {
			defaultTo(&r.Laggards, &Laggards{})
			r.Laggards.add(w)
			continue
		}
		r.Deliveries += w.tally.seen
		r.Lost += w.tally.lost()
		r.Restarts += w.restarts
		newest = max(newest, w.newest)
	}
	if took := newest - l.warm; newest > 0 {
		r.DeliveriesPerSecond = float64(r.Deliveries) / took.Seconds()
	}
	return r
}

func (r WatchReport) WriteText(w *bytes.Buffer) {
	fmt.Fprintln(w, r.Machine)
	if len(r.Loads) == 0 {
		return
	}
	first := r.Loads[0]
	fmt.Fprintf(w, "%s\n\n", strings.Join(first.words(), ", "))
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
	if first.getsObjects() {
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
		if load.saturated() {
			fmt.Fprintf(w, "\n%s: fewer events arrived than were asked for. The machine was saturated, so the\nlatencies are those of a growing queue: lower the rate or the number of watchers.\n", load.Transport)
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
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.Name, measure.Round(s.Latency.P50), measure.Round(s.Latency.P90), measure.Round(s.Latency.P99), measure.Round(s.Latency.Max))
		}
		table.Flush()
	}
}

// saturated reports whether the load was more than the machine could take.
func (l WatchLoad) saturated() bool {
	return l.DeliveriesPerSecond < 0.95*l.RateAsked*float64(l.prompt())/float64(l.groups())
}

// allDeliveries are those to laggards too.
func (l WatchLoad) allDeliveries() int {
	if l.Laggards == nil {
		return l.Deliveries
	}
	return l.Deliveries + l.Laggards.Deliveries
}

// prompt is how many watchers are no laggards.
func (l WatchLoad) prompt() int {
	if l.Laggards == nil {
		return l.Watchers
	}
	return l.Watchers - l.Laggards.Slow - l.Laggards.Stalled
}

// words describe the load, but not its transport.
func (l WatchLoad) words() []string {
	words := []string{fmt.Sprintf("watchers %d", l.Watchers), fmt.Sprintf("writers %d", l.Writers), fmt.Sprintf("events %d of %d bytes", l.Events, l.PayloadBytes), l.Resource, l.Encoding}
	if l.Decode {
		words = append(words, "decoded")
	}
	l.spread(func(_, of string, several int) { words = append(words, fmt.Sprintf(of, several)) })
	if l.Objects > 0 {
		words = append(words, fmt.Sprintf("%d more objects", l.Objects))
	}
	if l.getsObjects() {
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
		fmt.Fprintf(w, "BenchmarkWatch/%s-%d\t%d", load.name(), r.Machine.GOMAXPROCS, load.Deliveries)
		for _, m := range load.metrics() {
			fmt.Fprintf(w, "\t%g %s", m.value, m.unit)
		}
		fmt.Fprintln(w)
	}
}

func (l WatchLoad) name() string {
	name := fmt.Sprintf("transport=%s/watchers=%d/rate=%g/encoding=%s/resource=%s", l.Transport, l.Watchers, l.RateAsked, l.Encoding, l.Resource)
	l.spread(func(flag, _ string, several int) { name += fmt.Sprintf("/%s=%d", flag, several) })
	if l.getsObjects() {
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

// metric is a number with the unit of the Go benchmark format.
type metric struct {
	value float64
	unit  string
}

func (l WatchLoad) metrics() []metric {
	metrics := []metric{{float64(l.Latency.Mean), "mean-ns"}}
	for _, q := range quantiles {
		metrics = append(metrics, metric{float64(q.of(l.Latency)), q.name + "-ns"})
	}
	metrics = append(metrics, metric{l.DeliveriesPerSecond, "events/s"})
	if l.getsObjects() {
		metrics = append(metrics, metric{float64(l.OpenLatency.P50), "open-p50-ns"}, metric{float64(l.OpenLatency.P99), "open-p99-ns"})
	}
	if l.Server == nil {
		return metrics
	}
	metrics = append(metrics,
		metric{l.Server.CPUPerMillion.Seconds(), "cpu-s/million"},
		metric{l.Server.BytesPerDelivery, "B/delivery"},
		metric{l.Server.AllocsPerDelivery, "allocs/delivery"})
	if memory := l.Server.MemoryPerWatch; memory != 0 {
		metrics = append(metrics, metric{float64(memory), "B/watch"})
	}
	return metrics
}
