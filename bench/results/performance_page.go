package results

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/dustin/go-humanize"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/internal/outfile"
)

// Write writes the page and its plots from the raw data that is there.
func (f Folder) Write() error {
	data, err := f.read()
	if err != nil {
		return err
	}
	for encoding, curve := range data.Curves {
		svg, err := curve.svg("deliveries/s", func(l WatchLoad) float64 { return l.DeliveriesPerSecond })
		if err != nil {
			return err
		}
		if err := outfile.Write(filepath.Join(f.data(), encoding+".svg"), svg); err != nil {
			return err
		}
	}
	page, err := data.markdown()
	if err != nil {
		return err
	}
	return outfile.Write(f.Page(), page)
}

// markdown is the page.
func (p published) markdown() ([]byte, error) {
	parsed, err := template.New("PERFORMANCE.md.tmpl").Funcs(template.FuncMap{
		"percent": func(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) },
		"round":   measure.Round,
		"day":     func(at time.Time) string { return at.Format(time.DateOnly) },
		"count":   Count,
		"comma":   func(n int) string { return humanize.Comma(int64(n)) },
		"values":  (*SweepReport).Values,
		"kib":     kib,
		"load":    func() load.Options { return load.Options{}.WithDefaults() },
		"host":    func(name string) string { return hostTitles[name] },
		"deliveries": func(r *SweepReport) string {
			return r.markdown(func(l WatchLoad) string { return Count(l.DeliveriesPerSecond) })
		},
		"cost": func(r *SweepReport) string {
			return r.markdown(func(l WatchLoad) string { return Count(cpuOf(l)) + " s" })
		},
	}).ParseFS(pageFiles, "page/PERFORMANCE.md.tmpl")
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	if err := parsed.Execute(&page, p); err != nil {
		return nil, err
	}
	return page.Bytes(), nil
}

// hostTitles are what the page calls hosts, in the order of its columns.
var hostTitles = map[string]string{
	load.TransportProcess: "in process", load.TransportTLS: "over TLS", load.Stock: "stock, over TLS",
	load.BaselineHTTP2: "bare HTTP/2 server", load.BaselineCacher: "watch cache alone",
	load.BaselineStore: "store alone",
}

var hostOrder = []string{load.TransportProcess, load.TransportTLS, load.Stock, load.BaselineHTTP2, load.BaselineCacher,
	load.BaselineStore}

// Count is a number with three digits that count.
func Count(n float64) string {
	if n < 999.5 {
		return fmt.Sprintf("%.3g", n)
	}
	unit := 1.0
	for n/unit >= 1000 {
		unit *= 10
	}
	return humanize.Comma(int64(unit) * int64(n/unit+0.5))
}

// unknown is in a table for what was not measured, such as the memory of a few watches.
const unknown = "-"

func kib(bytes int64) string {
	if bytes == 0 {
		return unknown
	}
	return Count(float64(bytes)/1024) + " KiB"
}

// extend puts the points of many watchers at the end of their curves.
func (p published) extend() {
	if p.Many == nil {
		return
	}
	for _, encoding := range CurveParts {
		curve := p.Curves[encoding]
		if curve == nil {
			begun := *p.Many
			begun.Points, curve = nil, &begun
		}
		curve.Points = slices.DeleteFunc(curve.Points, func(point SweepPoint) bool {
			return slices.Contains(p.Many.Values(), point.Value)
		})
		for _, point := range p.Many.Points {
			if point.Encoding == encoding {
				point.within = p.Many.Objective
				curve.Points = append(curve.Points, point)
			}
		}
		if len(curve.Points) > 0 {
			p.Curves[encoding] = curve
		}
	}
}

// best is the load with the highest rate that was found for a value on a host, in any round; nil if
// there is none.
func (r *SweepReport) best(host string, value int) (best *WatchLoad) {
	for _, point := range r.Points {
		if point.Transport != host || point.Value != value || point.Best == nil {
			continue
		}
		if best == nil || point.Best.DeliveriesPerSecond > best.DeliveriesPerSecond {
			best = point.Best
		}
	}
	return best
}

// label is what a row calls its value.
func (r *SweepReport) label(value int) string {
	label := humanize.Comma(int64(value))
	for _, point := range r.Points {
		if point.Value == value && point.within > 0 {
			return fmt.Sprintf("%s, within %s", label, point.within)
		}
	}
	return label
}

// hosts are those that were measured, in the order of columns.
func (r *SweepReport) hosts() (hosts []string) {
	for _, host := range hostOrder {
		if slices.ContainsFunc(r.Points, func(p SweepPoint) bool { return p.Transport == host }) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Values are those that were tried, in order.
func (r *SweepReport) Values() (values []int) {
	for _, point := range r.Points {
		values = append(values, point.Value)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// markdown is a table of the values on each host.
func (r *SweepReport) markdown(cell func(WatchLoad) string) string {
	header := []string{r.Option}
	for _, host := range r.hosts() {
		header = append(header, hostTitles[host])
	}
	rows := [][]string{header}
	for _, value := range r.Values() {
		row := []string{r.label(value)}
		for _, host := range r.hosts() {
			text := "-"
			if load := r.best(host, value); load != nil {
				text = cell(*load)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return markdownTable(ofNumbers, rows)
}

// The first column of a table has words, or numbers as the others have.
const (
	ofWords   = "---"
	ofNumbers = "---:"
)

// markdownTable is a table whose first row is the header.
func markdownTable(first string, rows [][]string) string {
	line := append([]string{first}, slices.Repeat([]string{ofNumbers}, len(rows[0])-1)...)
	var table strings.Builder
	for _, row := range slices.Insert(rows, 1, line) {
		fmt.Fprintf(&table, "| %s |\n", strings.Join(row, " | "))
	}
	return table.String()
}

// Encodings are the encodings of which there are curves, in the order in which they are measured.
func (p published) Encodings() []string {
	return slices.DeleteFunc(slices.Clone(PublishParts), func(part string) bool { return p.Curves[part] == nil })
}

// Any is one of the reports: they say on which machine they were measured.
func (p published) Any() *SweepReport {
	for _, encoding := range p.Encodings() {
		return p.Curves[encoding]
	}
	return p.Most
}

// MostUse is for which share of the time the CPUs were in use, at the rate of the row where that
// was least.
func (p published) MostUse() float64 {
	least := 1.0
	for _, value := range p.Most.Values() {
		if load := p.Most.best(load.TransportProcess, value); load != nil {
			least = min(least, cpuOf(*load)*load.DeliveriesPerSecond/1e6/float64(p.Most.Machine.GOMAXPROCS))
		}
	}
	return least
}

// MostTable is how many events a second reach the most watchers.
func (p published) MostTable() string {
	rows := [][]string{{"watchers", "events/s", "deliveries/s", "p50", "p99", "CPU time for a million"}}
	for _, value := range p.Most.Values() {
		row := append([]string{humanize.Comma(int64(value))}, slices.Repeat([]string{"-"}, len(rows[0])-1)...)
		if load := p.Most.best(load.TransportProcess, value); load != nil {
			row = append(row[:1], Count(load.RateAsked), Count(load.DeliveriesPerSecond),
				measure.Round(load.Latency.P50).String(), measure.Round(load.Latency.P99).String(),
				Count(cpuOf(*load))+" s")
		}
		rows = append(rows, row)
	}
	return markdownTable(ofNumbers, rows)
}

// Ratios are how many deliveries a second ours makes for each of stock's, by watchers and encoding.
func (p published) Ratios() string {
	header := []string{"watchers"}
	rows := map[int][]string{}
	for _, encoding := range p.Encodings() {
		for _, value := range p.Curves[encoding].Values() {
			rows[value] = []string{p.Curves[encoding].label(value)}
		}
	}
	for _, encoding := range p.Encodings() {
		for _, host := range []string{load.TransportProcess, load.TransportTLS} {
			header = append(header, fmt.Sprintf("%s, %s", hostTitles[host], encoding))
			for value := range rows {
				rows[value] = append(rows[value], p.Curves[encoding].ratio(host, value))
			}
		}
	}
	table := [][]string{header}
	for _, value := range slices.Sorted(maps.Keys(rows)) {
		table = append(table, rows[value])
	}
	return markdownTable(ofNumbers, table)
}

// ratio is that of the deliveries a second of a host to those of stock.
func (r *SweepReport) ratio(host string, value int) string {
	ours, stock := r.best(host, value), r.best(load.Stock, value)
	if ours == nil || stock == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", ours.DeliveriesPerSecond/stock.DeliveriesPerSecond)
}

// MemoryTable is what a watch takes.
func (p published) MemoryTable() string {
	rows := [][]string{{"", "watchers", "memory of a watch"}}
	for _, load := range p.Memory.Loads {
		if load.Server != nil {
			rows = append(rows, []string{hostTitles[load.Transport], humanize.Comma(int64(load.Watchers)),
				kib(load.Server.MemoryPerWatch)})
		}
	}
	return markdownTable(ofWords, rows)
}
