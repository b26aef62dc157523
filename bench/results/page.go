package results

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"time"

	"k8s.io/utils/ptr"

	"snowglobe.test/bench/measure"
	"snowglobe.test/internal/htmlpage"
	"snowglobe.test/internal/outfile"
)

//go:embed page
var pageFiles embed.FS

// A page of measurements.
type page struct {
	Title   string
	Machine measure.Machine
	Date    string
	Text    string // the report as people read it in a terminal
	Figures []figure
}

// figure is a plot and its alternative text.
type figure struct {
	Title string
	Image template.URL
	Says  string
}

// PlottedReport is a report of which there is a page.
type PlottedReport interface {
	Report
	page() (page, error)
}

// WriteHTMLFile writes a page with the plots of a report to a file. It overwrites an existing file
// and creates missing folders.
func WriteHTMLFile(path string, r PlottedReport) error {
	text := &bytes.Buffer{}
	r.WriteText(text)
	view, err := r.page()
	view.Text = text.String()
	var page bytes.Buffer
	if err == nil {
		err = htmlpage.Execute(&page, pageFiles, "", map[string]any{"Page": view})
	}
	if err == nil {
		err = outfile.Write(path, page.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func (r AllReport) page() (page, error) {
	p := page{Title: "A control plane on this machine", Machine: r.Machine, Date: r.Date.Format(time.DateTime + " UTC")}
	var errs []error
	for _, m := range r.Measures {
		image, err := plotRounds(m)
		t := m.timing()
		errs = append(errs, err)
		p.Figures = append(p.Figures, figure{m.Name, image, fmt.Sprintf("median %s, from %s to %s in %d rounds",
			measure.Round(t.Median), measure.Round(t.Min), measure.Round(t.Max), len(m.Samples))})
	}
	return p, errors.Join(errs...)
}

func (r SweepReport) page() (page, error) {
	p := page{Title: "Watch fan-out by " + r.Option, Machine: r.Machine, Date: r.Date.Format(time.DateTime + " UTC")}
	var errs []error
	for _, plotted := range []struct {
		title, label string
		of           func(WatchLoad) float64
	}{
		{fmt.Sprintf("Deliveries a second, p99 at most %s", r.Objective), "deliveries/s",
			func(l WatchLoad) float64 { return l.DeliveriesPerSecond }},
		{"CPU of the server for a million deliveries", "s", cpuOf},
		{"Memory of the server for a watch", "KiB",
			func(l WatchLoad) float64 { return float64(usageOf(l).MemoryPerWatch) / 1024 }},
	} {
		image, err := plotSweep(r, plotted.label, plotted.of)
		if errs = append(errs, err); image != "" {
			p.Figures = append(p.Figures, figure{plotted.title, image, "The numbers are in the table above."})
		}
	}
	return p, errors.Join(errs...)
}

// usageOf is what a load has cost its server, zero if that is not known.
func usageOf(l WatchLoad) measure.Usage { return ptr.Deref(l.Server, measure.Usage{}) }

func cpuOf(l WatchLoad) float64 { return usageOf(l).CPUPerMillion.Seconds() }
