package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
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

// The objectives of the searches. Those for many and for the most watchers are longer than that of the
// curves, because delivering one event to so many watchers takes longer.
const (
	curveObjective = 50 * time.Millisecond
	manyObjective  = time.Second
	mostObjective  = 10 * time.Second
)

// By which factor events are written longer for many and for the most watchers than for the others.
// While less time than the objective has passed, no delivery can be late, whatever the rate.
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
		o.Only = results.PublishParts
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
		if !slices.Contains(results.PublishParts, part) {
			return fmt.Errorf("part %q is unknown; use %s", part, strings.Join(results.PublishParts, ", "))
		}
	}
	return nil
}

// Publish measures what a page about watch fan-out on this machine says, and writes the page. Each
// part is written as soon as it has been measured, so that a later error does not lose it.
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
	folder := results.Folder(o.Folder)
	if o.Keep {
		return folder.Write()
	}
	if err := outfile.Try(folder.Page()); err != nil {
		return err
	}
	against := WatchOptions{Against: o.Against, Progress: o.Progress}
	if !slices.ContainsFunc(o.Only, func(part string) bool {
		return part != results.PartMost &&
			part != results.PartShares
	}) {
		against.Against = "" // these have no peer
	}
	var used *measure.Binaries
	return against.withStock(ctx, &used, func(with WatchOptions) error {
		o.Against = with.Against
		for _, part := range o.Only {
			began := time.Now()
			measured, err := o.measure(ctx, part)
			if curve, ok := measured.(results.SweepReport); ok && err == nil {
				measured, err = folder.Merge(part, curve)
			}
			if err == nil {
				err = folder.Keep(part, measured)
			}
			if err == nil {
				err = folder.Write()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", part, err)
			}
			fmt.Fprintf(o.Progress, "%s: measured in %s\n", part, measure.Round(time.Since(began)))
		}
		return nil
	})
}

func (o PublishOptions) measure(ctx context.Context, part string) (any, error) {
	sweep := SweepOptions{
		WatchOptions: WatchOptions{Pace: load.Pace{Duration: o.Duration}, Progress: o.Progress, Against: o.Against,
			Baselines: true},
		Sweep: Sweep{"watchers", o.Watchers}, Objective: curveObjective,
	}
	switch part {
	case results.PartShares:
		return o.shares(ctx)
	case results.PartMemory:
		return o.memory(ctx)
	case results.PartMost:
		sweep.Transport, sweep.Against, sweep.Baselines = TransportProcess, "", false
		sweep.Sweep.Values, sweep.Objective = o.Most, mostObjective
		sweep.Duration, sweep.Rate = mostLonger*o.Duration, 10
	case results.PartMany:
		sweep.Sweep.Values, sweep.Objective, sweep.Encodings = []int{o.Many}, manyObjective, results.CurveParts
		sweep.Duration, sweep.Rate, sweep.Rounds = manyLonger*o.Duration, 4, 1
	default:
		sweep.Encoding, sweep.again = part, part != results.PublishParts[0]
	}
	return o.sweep(ctx, sweep)
}

func (o PublishOptions) sweep(ctx context.Context, opts SweepOptions) (results.SweepReport, error) {
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
func (o PublishOptions) memory(ctx context.Context) (results.WatchReport, error) {
	rate := max(1, 1/o.Duration.Seconds()) // one event or more
	load := WatchOptions{Shape: load.Shape{Watchers: o.Many}, Pace: load.Pace{Rate: rate, Duration: o.Duration},
		Against: o.Against, Rounds: 1, Progress: o.Progress}
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

// The load whose shares are measured: some 10,000 deliveries a second.
const (
	sharesWatchers = 1000
	sharesRate     = 10
)

func (o PublishOptions) shares(ctx context.Context) (report results.SharesReport, err error) {
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
	report = results.SharesReport{Machine: watched.Machine, Date: time.Now().UTC().Truncate(time.Second)}
	for _, load := range watched.Loads {
		profiles := measure.Profiler{Folder: folder.Path(), Name: load.Transport}
		shares, sharesErr := measure.CPUShares(profiles.Path("cpu"))
		err = errors.Join(err, sharesErr)
		report.Loads = append(report.Loads, results.SharesLoad{WatchLoad: load, CPU: shares})
	}
	return report, err
}
