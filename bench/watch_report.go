package bench

import (
	"bytes"
	"fmt"
	"text/tabwriter"
	"time"
)

// WatchReport is the result of measuring watch fan-out.
type WatchReport struct {
	Machine Machine     `json:"machine"`
	Loads   []WatchLoad `json:"loads"`
}

// WatchLoad is one load and its result.
type WatchLoad struct {
	Transport    string  `json:"transport"`
	Encoding     string  `json:"encoding"`
	Store        string  `json:"store,omitempty"` // unknown for an existing cluster
	Watchers     int     `json:"watchers"`
	Writers      int     `json:"writers"`
	PayloadBytes int     `json:"payloadBytes"`
	RateAsked    float64 `json:"rateAsked"` // events/s
	Rate         float64 `json:"rate"`      // events/s that the writers reached
	Events       int     `json:"events"`

	Deliveries          int     `json:"deliveries"` // different events, over all watchers
	DeliveriesPerSecond float64 `json:"deliveriesPerSecond"`
	// Latency is from just before the write request until a watcher decoded the event.
	Latency Latency `json:"latency"`
	// WriteLatency is from the same moment until the writer has the answer.
	WriteLatency Latency `json:"writeLatency"`

	Lost       int `json:"lost"`
	Duplicates int `json:"duplicates"`
	Reordered  int `json:"reordered"`
	Restarts   int `json:"restarts"` // watches that the server ended early

	// AllocsPerDelivery and BytesPerDelivery are what the whole process
	// allocated, clients and, unless it is a target, API server and store.
	AllocsPerDelivery float64 `json:"allocsPerDelivery"`
	BytesPerDelivery  float64 `json:"bytesPerDelivery"`
}

func (l *load) sum(transport string, written time.Duration) *WatchLoad {
	r := &WatchLoad{
		Transport: transport, Encoding: l.opts.Encoding, Store: l.opts.Store,
		Watchers: l.opts.Watchers, Writers: l.opts.Writers, PayloadBytes: l.opts.PayloadBytes,
		RateAsked: l.opts.Rate, Rate: float64(l.events) / written.Seconds(), Events: l.events,
		Latency: l.delivery.sum(), WriteLatency: l.writing.sum(),
	}
	var newest time.Duration
	for _, w := range l.watchers {
		r.Deliveries += w.tally.seen
		r.Lost += w.tally.lost()
		r.Duplicates += w.tally.duplicates
		r.Reordered += w.tally.reordered
		r.Restarts += w.restarts
		newest = max(newest, w.newest)
	}
	if newest > 0 {
		r.DeliveriesPerSecond = float64(r.Deliveries) / newest.Seconds()
	}
	return r
}

func (r WatchReport) writeText(w *bytes.Buffer) {
	fmt.Fprintln(w, r.Machine)
	if len(r.Loads) == 0 {
		return
	}
	first := r.Loads[0]
	fmt.Fprintf(w, "watchers %d, writers %d, events %d of %d bytes, %s", first.Watchers, first.Writers, first.Events, first.PayloadBytes, first.Encoding)
	if first.Store != "" {
		fmt.Fprintf(w, ", store %s", first.Store)
	}
	fmt.Fprint(w, "\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(WatchLoad) string) {
		fmt.Fprintf(table, "%s", name)
		for _, load := range r.Loads {
			fmt.Fprintf(table, "\t%s", cell(load))
		}
		fmt.Fprintln(table)
	}
	row("", func(l WatchLoad) string { return l.Transport })
	row("events/s asked", func(l WatchLoad) string { return fmt.Sprintf("%.0f", l.RateAsked) })
	row("events/s written", func(l WatchLoad) string { return fmt.Sprintf("%.0f", l.Rate) })
	row("events/s delivered", func(l WatchLoad) string { return fmt.Sprintf("%.0f", l.DeliveriesPerSecond) })
	for _, q := range quantiles {
		row("delivery "+q.name, func(l WatchLoad) string { return round(q.of(l.Latency)).String() })
	}
	for _, q := range quantiles {
		row("write "+q.name, func(l WatchLoad) string { return round(q.of(l.WriteLatency)).String() })
	}
	row("allocations/delivery", func(l WatchLoad) string { return fmt.Sprintf("%.1f", l.AllocsPerDelivery) })
	row("bytes/delivery", func(l WatchLoad) string { return fmt.Sprintf("%.0f", l.BytesPerDelivery) })
	row("lost", func(l WatchLoad) string { return fmt.Sprint(l.Lost) })
	row("duplicate", func(l WatchLoad) string { return fmt.Sprint(l.Duplicates) })
	row("out of order", func(l WatchLoad) string { return fmt.Sprint(l.Reordered) })
	row("watches restarted", func(l WatchLoad) string { return fmt.Sprint(l.Restarts) })
	table.Flush()
	for _, load := range r.Loads {
		if load.saturated() {
			fmt.Fprintf(w, "\n%s: fewer events arrived than were asked for. The machine was saturated, so the\nlatencies are those of a growing queue: lower the rate or the number of watchers.\n", load.Transport)
		}
	}
}

// saturated reports whether the load was more than the machine could take.
func (l WatchLoad) saturated() bool {
	return l.DeliveriesPerSecond < 0.95*l.RateAsked*float64(l.Watchers)
}

// quantiles are the columns of a Latency in the order people read them.
var quantiles = []struct {
	name string
	of   func(Latency) time.Duration
}{
	{"p50", func(l Latency) time.Duration { return l.P50 }},
	{"p90", func(l Latency) time.Duration { return l.P90 }},
	{"p99", func(l Latency) time.Duration { return l.P99 }},
	{"p99.9", func(l Latency) time.Duration { return l.P999 }},
	{"max", func(l Latency) time.Duration { return l.Max }},
}

func (r WatchReport) writeBenchmark(w *bytes.Buffer) {
	fmt.Fprintln(w, "Unit events/s better=higher")
	r.Machine.writeHeader(w)
	for _, load := range r.Loads {
		fmt.Fprintf(w, "BenchmarkWatch/%s-%d\t%d", load.name(), r.Machine.GOMAXPROCS, load.Deliveries)
		for _, m := range load.metrics() {
			fmt.Fprintf(w, "\t%g %s", m.value, m.unit)
		}
		fmt.Fprintln(w)
	}
}

func (l WatchLoad) name() string {
	name := fmt.Sprintf("transport=%s/watchers=%d/rate=%g/encoding=%s", l.Transport, l.Watchers, l.RateAsked, l.Encoding)
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
	return append(metrics,
		metric{l.DeliveriesPerSecond, "events/s"},
		metric{l.BytesPerDelivery, "B/delivery"},
		metric{l.AllocsPerDelivery, "allocs/delivery"})
}
