package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/internal/outfile"
	"snowglobe.test/internal/tempdir"
)

// PublishOptions describe the measurements of a page about watch fan-out.
type PublishOptions struct {
	// Folder gets PERFORMANCE.md, and in a folder performance the plots and the raw data.
	Folder string
	// Only are the parts to measure, of PublishParts; empty means all. The page has them all, as they
	// were measured last.
	Only []string
	// Keep measures nothing: the page is written from the raw data that is there.
	Keep bool
	// Against is what is measured in turn with ours: a folder with kube-apiserver and etcd, or
	// measure.AgainstStock. Empty means nothing.
	Against string
	// Duration is how long events are written at each rate that is tried. Zero means 2 s.
	Duration time.Duration
	// Watchers are how many watch, in the curves; empty means 1, 10, 100 and 1,000.
	Watchers []int
	// Many is how many watch in the parts for many and for memory; zero means 10,000.
	Many int
	// Most are how many watch in the part for the most, and the largest in that for memory; empty means
	// 12,000, 25,000, 50,000 and 100,000.
	Most []int
	// Progress gets a line now and then; it may be nil.
	Progress io.Writer
}

// The parts of a page: the curves of each encoding, their last points, what a watch takes, as many
// watchers as a machine holds, and where the time goes.
const (
	partMany   = "many"
	partMemory = "memory"
	partMost   = "most"
	partShares = "shares"
)

// PublishParts are the parts of a page that can be measured by themselves.
var PublishParts = []string{"json", "protobuf", load.EncodingCBOR, partMany, partMemory, partMost, partShares}

// curveParts are the parts of which each is the curve of the encoding with its name.
var curveParts = PublishParts[:3]

// What the curves are held to, and what is in reach of so many watchers that one event takes longer
// than that to all of them.
const (
	curveObjective = 50 * time.Millisecond
	manyObjective  = time.Second
	mostObjective  = 10 * time.Second
)

// How much longer than for the others events are written for many and for the most watchers: an
// objective that is long is met for that long at any rate.
const (
	manyLonger = 3
	mostLonger = 5
)

func (o PublishOptions) withDefaults() PublishOptions {
	o.Duration = cmp.Or(o.Duration, 2*time.Second)
	o.Many = cmp.Or(o.Many, 10_000)
	o.Progress = cmp.Or(o.Progress, io.Discard)
	if len(o.Watchers) == 0 {
		o.Watchers = []int{1, 10, 100, 1_000}
	}
	if len(o.Most) == 0 {
		o.Most = []int{12_000, 25_000, 50_000, load.MaxWatchers}
	}
	if len(o.Only) == 0 {
		o.Only = PublishParts
	}
	if o.Keep {
		o.Only = nil
	}
	return o
}

func (o PublishOptions) validate() error {
	switch {
	case o.Folder == "":
		return errors.New("give a folder for the page")
	case o.Duration < 0:
		return fmt.Errorf("a duration of %s: it must be positive", o.Duration)
	}
	for _, watchers := range append(slices.Concat(o.Watchers, o.Most), o.Many) {
		if watchers < 1 || watchers > load.MaxWatchers {
			return fmt.Errorf("%d watchers: give a number from 1 to %d", watchers, load.MaxWatchers)
		}
	}
	for _, part := range o.Only {
		if !slices.Contains(PublishParts, part) {
			return fmt.Errorf("part %q is unknown; use %s", part, strings.Join(PublishParts, ", "))
		}
	}
	return nil
}

// Publish measures what a page about watch fan-out on this machine says, and writes the page. Each
// part is there when it has been measured, whatever comes after it.
func Publish(ctx context.Context, opts PublishOptions) error {
	opts = opts.withDefaults()
	if ChildRequested() {
		return child.ErrRequested
	}
	err := opts.validate()
	if err == nil {
		err = opts.publish(ctx)
	}
	if err != nil {
		return fmt.Errorf("bench publish: %w", err)
	}
	return nil
}

func (o PublishOptions) publish(ctx context.Context) error {
	if o.Keep {
		return o.write()
	}
	if err := outfile.Try(o.page()); err != nil {
		return err
	}
	against := WatchOptions{Against: o.Against, Progress: o.Progress}
	if !slices.ContainsFunc(o.Only, func(part string) bool { return part != partMost && part != partShares }) {
		against.Against = "" // these have no peer
	}
	var used *measure.Binaries
	return against.withStock(ctx, &used, func(with WatchOptions) error {
		o.Against = with.Against
		for _, part := range o.Only {
			began := time.Now()
			measured, err := o.measure(ctx, part)
			if curve, ok := measured.(SweepReport); ok && err == nil {
				measured, err = o.merge(part, curve)
			}
			if err == nil {
				err = o.keep(part, measured)
			}
			if err == nil {
				err = o.write()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", part, err)
			}
			fmt.Fprintf(o.Progress, "%s: measured in %s\n", part, measure.Round(time.Since(began)))
		}
		return nil
	})
}

func (o PublishOptions) page() string { return filepath.Join(o.Folder, "PERFORMANCE.md") }

func (o PublishOptions) data() string { return filepath.Join(o.Folder, "performance") }

func (o PublishOptions) file(part string) string { return filepath.Join(o.data(), part+".json") }

// merge adds to a sweep the points of the raw data at other values, if they are of this machine.
func (o PublishOptions) merge(part string, now SweepReport) (SweepReport, error) {
	var old *SweepReport
	err := o.load(part, &old)
	if err != nil || old == nil || old.Machine != now.Machine || old.Objective != now.Objective {
		return now, err
	}
	measured := now.values()
	for _, point := range old.Points {
		if !slices.Contains(measured, point.Value) {
			now.Points = append(now.Points, point)
		}
	}
	return now, nil
}

// load reads the raw data of a part into a pointer to a report, which stays nil if there is none.
func (o PublishOptions) load(part string, into any) error {
	text, err := os.ReadFile(o.file(part))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read the raw data: %s: %w", o.file(part), err)
	}
	return nil
}

// keep writes the raw data of a part.
func (o PublishOptions) keep(part string, measured any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(measured); err != nil {
		return err
	}
	return outfile.Write(o.file(part), text.Bytes())
}

func (o PublishOptions) measure(ctx context.Context, part string) (any, error) {
	sweep := SweepOptions{
		WatchOptions: WatchOptions{Pace: load.Pace{Duration: o.Duration}, Progress: o.Progress, Against: o.Against, Baselines: true},
		Sweep:        Sweep{"watchers", o.Watchers}, Objective: curveObjective,
	}
	switch part {
	case partShares:
		return o.shares(ctx)
	case partMemory:
		return o.memory(ctx)
	case partMost:
		sweep.Transport, sweep.Against, sweep.Baselines = TransportProcess, "", false
		sweep.Sweep.Values, sweep.Objective = o.Most, mostObjective
		sweep.Duration, sweep.Rate = mostLonger*o.Duration, 10
	case partMany:
		sweep.Sweep.Values, sweep.Objective, sweep.Encodings = []int{o.Many}, manyObjective, curveParts
		sweep.Duration, sweep.Rate, sweep.Rounds = manyLonger*o.Duration, 4, 1
	default:
		sweep.Encoding, sweep.again = part, part != PublishParts[0]
	}
	return o.sweep(ctx, sweep)
}

func (o PublishOptions) sweep(ctx context.Context, opts SweepOptions) (SweepReport, error) {
	report, err := WatchSweep(ctx, opts)
	forgetFolder(report.Against)
	return report, err
}

// forgetFolder leaves out where binaries lay, which says nothing on other machines.
func forgetFolder(b *measure.Binaries) {
	if b != nil {
		b.Folder = ""
	}
}

// memory is what a watch takes beside stock, and in process where there are the most.
func (o PublishOptions) memory(ctx context.Context) (WatchReport, error) {
	rate := max(1, 1/o.Duration.Seconds()) // one event or more
	load := WatchOptions{Shape: load.Shape{Watchers: o.Many}, Pace: load.Pace{Rate: rate, Duration: o.Duration}, Against: o.Against, Rounds: 1, Progress: o.Progress}
	report, err := Watch(ctx, load)
	forgetFolder(report.Against)
	if err != nil {
		return report, err
	}
	load.Watchers, load.Transport, load.Against = slices.Max(o.Most), TransportProcess, ""
	most, err := Watch(ctx, load)
	report.Loads = append(report.Loads, most.Loads...)
	return report, err
}

// SharesReport is where the time of a control plane goes, for a load that leaves the machine some.
type SharesReport struct {
	Machine measure.Machine `json:"machine"`
	Date    time.Time       `json:"date"`
	Loads   []SharesLoad    `json:"loads"`
}

// SharesLoad is a load with the shares of its server's CPU time.
type SharesLoad struct {
	WatchLoad
	CPU []measure.CPUShare `json:"cpu"`
}

// The load whose shares are measured: some 10,000 deliveries a second.
const (
	sharesWatchers = 1000
	sharesRate     = 10
)

func (o PublishOptions) shares(ctx context.Context) (report SharesReport, err error) {
	folder, err := tempdir.Make("bench")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	load := WatchOptions{
		Shape:    load.Shape{Watchers: min(sharesWatchers, slices.Max(o.Watchers))},
		Pace:     load.Pace{Rate: sharesRate, Duration: 5 * o.Duration},
		Stages:   true,
		Profile:  folder.Path(),
		Progress: o.Progress,
	}
	watched, err := Watch(ctx, load)
	report = SharesReport{Machine: watched.Machine, Date: time.Now().UTC().Truncate(time.Second)}
	for _, load := range watched.Loads {
		profiles := measure.Profiler{Folder: folder.Path(), Name: load.Transport}
		shares, sharesErr := measure.CPUShares(profiles.Path("cpu"))
		err = errors.Join(err, sharesErr)
		report.Loads = append(report.Loads, SharesLoad{load, shares})
	}
	return report, err
}

// published is the raw data of a page.
type published struct {
	Curves map[string]*SweepReport // by encoding
	Many   *SweepReport
	Memory *WatchReport
	Most   *SweepReport
	Shares *SharesReport
}

// read reads the raw data that is there.
func (o PublishOptions) read() (published, error) {
	p := published{Curves: map[string]*SweepReport{}}
	err := errors.Join(o.load(partMany, &p.Many), o.load(partMemory, &p.Memory), o.load(partMost, &p.Most),
		o.load(partShares, &p.Shares))
	for _, encoding := range curveParts {
		var curve *SweepReport
		if err = errors.Join(err, o.load(encoding, &curve)); curve != nil {
			p.Curves[encoding] = curve
		}
	}
	if err != nil {
		return p, err
	}
	p.extend()
	if p.Any() == nil && p.Shares == nil && p.Memory == nil {
		return p, fmt.Errorf("there is no raw data in %s: measure it first, without --keep", o.data())
	}
	return p, nil
}
