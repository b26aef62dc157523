package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/envtest/linked"
)

// Sweep is what a sweep varies, and through which values.
type Sweep struct {
	Option string // one of load.Sweepable
	Values []int
}

// ParseSweep parses a sweep like "watchers=1,10,100".
func ParseSweep(text string) (Sweep, error) {
	option, list, ok := strings.Cut(text, "=")
	if !ok || !slices.Contains(load.Sweepable(), option) {
		return Sweep{}, fmt.Errorf("sweep %q: give an option and its values, like watchers=1,10,100; options are %s",
			text, strings.Join(load.Sweepable(), ", "))
	}
	s := Sweep{Option: option}
	for value := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 1 {
			return Sweep{}, fmt.Errorf("sweep %q: %q is no number above 0", text, value)
		}
		s.Values = append(s.Values, n)
	}
	return s, nil
}

// SweepOptions describe a search for the highest rates that hold an objective.
type SweepOptions struct {
	WatchOptions // Rate is where the search begins
	Sweep        Sweep
	// Encodings are tried in turn; empty means that of the options alone.
	Encodings []string
	// Objective is how long the slowest of a hundred deliveries may take. Zero means 50 ms.
	Objective time.Duration
}

// searchPrecision ends a search: the lowest rate that fails is at most this many times the highest
// that holds.
const searchPrecision = 1.1

// maxTrials bounds the loads of one search.
const maxTrials = 24

// WatchSweep finds, for each value of the sweep and each transport, the highest rate of events
// that all watchers get within the objective, by trying: it doubles the rate until it fails twice, and
// then halves the distance. With an error the report holds what was found before it.
func WatchSweep(ctx context.Context, opts SweepOptions) (results.SweepReport, error) {
	opts.WatchOptions = opts.withDefaults()
	opts.Objective = cmp.Or(opts.Objective, 50*time.Millisecond)
	if opts.Encodings == nil {
		opts.Encodings = []string{opts.Encoding}
	}
	report := results.SweepReport{Machine: measure.ThisMachine(linked.Release()),
		Date: time.Now().UTC().Truncate(time.Second), Option: opts.Sweep.Option, Objective: opts.Objective}
	if ChildRequested() {
		return report, child.ErrRequested
	}
	if err := opts.validate(); err != nil {
		return report, fmt.Errorf("bench watch: %w", err)
	}
	err := opts.withStock(ctx, &report.Against, func(o WatchOptions) error {
		opts.WatchOptions = o
		return opts.sweep(ctx, func(p results.SweepPoint) { report.Points = append(report.Points, p) })
	})
	if err != nil {
		return report, fmt.Errorf("bench watch: %w", err)
	}
	return report, nil
}

// sweep searches for each value in each encoding on each host, and calls found with what it finds.
func (o SweepOptions) sweep(ctx context.Context, found func(results.SweepPoint)) error {
	likely := map[string]float64{} // deliveries/s of each host and encoding, found for the value before
	for _, value := range o.Sweep.Values {
		for number, encoding := range o.Encodings {
			opts := o.at(value, encoding)
			opts.again = number > 0
			err := opts.inTurn(ctx, func(h host, round int) error {
				key := h.name + " " + encoding
				point, err := o.search(ctx, h, opts, likely[key])
				if point.Value, point.Round = value, round; point.Best != nil {
					likely[key] = point.Best.DeliveriesPerSecond
				}
				if err == nil || point.Best != nil {
					found(point)
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("%s=%d, %s: %w", o.Sweep.Option, value, encoding, err)
			}
		}
	}
	return nil
}

// at are the options of one value of the sweep in one encoding.
func (o SweepOptions) at(value int, encoding string) WatchOptions {
	opts := o.WatchOptions
	opts.Encoding = encoding
	opts.Set(o.Sweep.Option, value)
	opts.Writers = max(opts.Writers, opts.Groups())
	return opts
}

func (o SweepOptions) validate() error {
	if len(o.Sweep.Values) == 0 || !slices.Contains(load.Sweepable(), o.Sweep.Option) {
		return fmt.Errorf("sweep of %q: options are %s", o.Sweep.Option, strings.Join(load.Sweepable(), ", "))
	}
	if o.Objective < measure.ShortestLatency || o.Objective > measure.LongestLatency {
		return fmt.Errorf("an objective of %s: give a time from %s to %s", o.Objective, measure.ShortestLatency,
			measure.LongestLatency)
	}
	for _, value := range o.Sweep.Values {
		for _, encoding := range o.Encodings {
			if err := o.at(value, encoding).validate(); err != nil {
				return fmt.Errorf("%s=%d, %s: %w", o.Sweep.Option, value, encoding, err)
			}
		}
	}
	return nil
}

// search finds the highest rate for one value. It begins with the rate at which the host would make
// this many deliveries a second, unless that is 0.
func (o SweepOptions) search(ctx context.Context, h host, opts WatchOptions, deliveries float64) (results.SweepPoint,
	error) {
	point := results.SweepPoint{Transport: h.name, Encoding: opts.Encoding}
	opts.Progress = io.Discard
	if deliveries > 0 {
		opts.Rate = deliveries / opts.load().Receivers()
	}
	holds, fails := 0.0, math.Inf(1)
	for ; point.Trials < maxTrials && fails > holds*searchPrecision; opts.Rate = between(holds, fails) {
		if opts.Events() < 1 || opts.validate() != nil {
			break // lower or higher than a load can be
		}
		held, err := o.try(ctx, h, opts, &point)
		switch {
		case err != nil:
			return point, err
		case held:
			holds = opts.Rate
		default:
			fails = opts.Rate
		}
	}
	if point.Best == nil {
		return point, nil
	}
	var err error
	opts.Rate = holds
	point.Best.Stages, err = h.stages(ctx, opts)
	return point, err
}

// attempts is how often a rate has to fail before it counts as failed: once, the cause may be
// something else that the machine did.
const attempts = 2

// try reports whether a rate meets the objective, and puts the load that does into the point.
func (o SweepOptions) try(ctx context.Context, h host, opts WatchOptions, point *results.SweepPoint) (held bool,
	err error) {
	for range attempts {
		point.Trials++
		load, err := h.run(ctx, opts)
		if err != nil && (load == nil || !load.TimedOut) {
			return false, err // only a load that timed out counts as too slow
		}
		holds, verdict := err == nil && o.holds(*load), "fails"
		if holds {
			verdict = "holds"
		}
		fmt.Fprintf(o.Progress, "%s, %s, %s watchers: %s events/s %s: p99 %s, %s deliveries/s\n",
			h.name, opts.Encoding, results.Count(float64(opts.Watchers)), results.Count(opts.Rate), verdict,
			measure.Round(load.Latency.P99), results.Count(load.DeliveriesPerSecond))
		if holds {
			point.Best = load
			return true, nil
		}
	}
	return false, nil
}

// holds reports whether a load met the objective with what was asked of it.
func (o SweepOptions) holds(load results.WatchLoad) bool {
	return load.Latency.P99 <= o.Objective && !load.Saturated()
}

// between is the next rate to try.
func between(holds, fails float64) float64 {
	switch {
	case math.IsInf(fails, 1):
		return 2 * holds
	case holds == 0:
		return fails / 4
	}
	return math.Sqrt(holds * fails)
}
