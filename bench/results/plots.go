package results

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"image/color"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// plotColours are those of the lines of a plot, in turn: they differ in lightness too.
var plotColours = []color.RGBA{
	{0x1c, 0x59, 0xb5, 0xff}, {0xb9, 0x12, 0x26, 0xff}, {0x19, 0x70, 0x3a, 0xff},
	{0x83, 0x53, 0x00, 0xff}, {0x7a, 0x1f, 0xd1, 0xff}, {0x54, 0x5d, 0x69, 0xff},
}

const (
	plotWidth  = 4.6 * vg.Inch
	plotHeight = 2.4 * vg.Inch
)

// newPlot returns an empty plot in the style of all our plots.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, f := range []*font.Font{&p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font,
		&p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		f.Variant, f.Size = "Sans", 9
	}
	p.BackgroundColor = color.Transparent
	p.Legend.Top, p.Legend.Left = true, true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xdd}, color.Gray{0xdd}
	p.Add(grid)
	return p
}

// addLine adds a line with points; its name is for the legend, if it has one.
func addLine(p *plot.Plot, number int, name string, points plotter.XYs) error {
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	colour := plotColours[number%len(plotColours)]
	line.Color, marks.Color, marks.Shape, marks.Radius = colour, colour, draw.CircleGlyph{}, 1.8
	line.Dashes = plotDashes[number/len(plotColours)%len(plotDashes)]
	p.Add(line, marks)
	if name != "" {
		p.Legend.Add(name, line, marks)
	}
	return nil
}

// plotDashes tell lines of one colour apart.
var plotDashes = [][]vg.Length{nil, {4, 2}, {1, 2}}

// asImage is the plot as the source of an image.
func asImage(p *plot.Plot) (template.URL, error) {
	svg, err := drawn(p)
	if err != nil {
		return "", err
	}
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg)), nil
}

func drawn(p *plot.Plot) ([]byte, error) {
	canvas := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.New(canvas))
	var svg bytes.Buffer
	_, err := canvas.WriteTo(&svg)
	return svg.Bytes(), err
}

// plotRounds shows the samples of a measure, one for each round. The y axis begins at zero, so that
// small differences look small.
func plotRounds(m Measure) (template.URL, error) {
	unit, per := unitOf(m.timing().Max.Seconds())
	p := newPlot("round", unit)
	points := make(plotter.XYs, len(m.Samples))
	for i, sample := range m.Samples {
		points[i] = plotter.XY{X: float64(i + 1), Y: sample / per}
	}
	if err := addLine(p, 0, "", points); err != nil {
		return "", err
	}
	p.Y.Min = 0
	p.Y.Max *= 1.1
	return asImage(p)
}

// unitOf is the unit that suits a time in seconds, and how many seconds it has.
func unitOf(seconds float64) (name string, has float64) {
	switch {
	case seconds >= 1:
		return "s", 1
	case seconds >= 1e-3:
		return "ms", 1e-3
	}
	return "µs", 1e-6
}

// plotSweep shows what was found for each value of a sweep, a line for each that was measured; both
// axes are logarithmic. The points of several rounds are in the line as their mean.
func plotSweep(r SweepReport, label string, of func(WatchLoad) float64) (template.URL, error) {
	p, err := r.plot(label, of)
	if p == nil || err != nil {
		return "", err
	}
	return asImage(p)
}

// svg is the plot of plotSweep as an SVG file on white.
func (r SweepReport) svg(label string, of func(WatchLoad) float64) ([]byte, error) {
	p, err := r.plot(label, of)
	if p == nil || err != nil {
		return nil, err
	}
	p.BackgroundColor = color.White
	return drawn(p)
}

// plot is nil if there is nothing to show.
func (r SweepReport) plot(label string, of func(WatchLoad) float64) (*plot.Plot, error) {
	p := newPlot(r.Option, label)
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	number := 0
	for _, name := range r.names() {
		points := r.line(name, of)
		if len(points) == 0 {
			continue
		}
		if err := addLine(p, number, name, points); err != nil {
			return nil, err
		}
		number++
	}
	if number == 0 {
		return nil, nil
	}
	p.X.Min, p.X.Max = p.X.Min/1.5, p.X.Max*1.5
	p.Y.Min, p.Y.Max = p.Y.Min/2, p.Y.Max*6 // the legend is above
	return p, nil
}

// names are the hosts and encodings that were measured, in the order of the points.
func (r SweepReport) names() (names []string) {
	for _, point := range r.Points {
		if name := point.name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (p SweepPoint) name() string { return fmt.Sprintf("%s %s", p.Transport, p.Encoding) }

// line returns the points of one host and encoding, by value: the means of their rounds.
func (r SweepReport) line(name string, of func(WatchLoad) float64) (points plotter.XYs) {
	rounds := map[int][]float64{} // of each value
	for _, point := range r.Points {
		if point.name() != name || point.Best == nil {
			continue
		}
		if y := of(*point.Best); y > 0 && !math.IsInf(y, 0) {
			rounds[point.Value] = append(rounds[point.Value], y)
		}
	}
	for _, value := range slices.Sorted(maps.Keys(rounds)) {
		points = append(points, plotter.XY{X: float64(value), Y: mean(rounds[value])})
	}
	return points
}
