package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/bench/startup"
	"snowglobe.test/envtest/linked"
)

// AllOptions say how to measure all that users of a control plane feel.
type AllOptions struct {
	// Rounds is how often everything is measured. Zero means 30, or 12 if Quick.
	Rounds int
	// Quick has loads be shorter, for an answer within three minutes.
	Quick bool
	// Only is which of Parts to measure; empty means all.
	Only []string
	// InjectedSlowdown makes each boot, reset, write and list last longer by this share of its time,
	// such as 0.1, to check that a comparison notices.
	InjectedSlowdown float64
	// Progress gets a line for each round; it may be nil.
	Progress io.Writer
}

const maxRounds = 1000

// Parts are what All measures. The calibration is measured before each.
var Parts = []string{"startup", "requests", "watch"}

func (o AllOptions) withDefaults() AllOptions {
	if o.Quick {
		o.Rounds = cmp.Or(o.Rounds, 12)
	}
	if o.Only == nil {
		o.Only = Parts
	}
	o.Rounds = cmp.Or(o.Rounds, 30)
	o.Progress = cmp.Or(o.Progress, io.Discard)
	return o
}

func (o AllOptions) validate() error {
	for _, part := range o.Only {
		if !slices.Contains(Parts, part) {
			return fmt.Errorf("there is no part %q to measure; use %s", part, strings.Join(Parts, ", "))
		}
	}
	switch {
	case o.Rounds < 1 || o.Rounds > maxRounds:
		return fmt.Errorf("%d rounds: give a number from 1 to %d", o.Rounds, maxRounds)
	case o.InjectedSlowdown < 0 || o.InjectedSlowdown > 10:
		return fmt.Errorf("an injected slowdown of %g: give a share of the time from 0 to 10, like 0.1",
			o.InjectedSlowdown)
	}
	return nil
}

// All measures startup, reset, list, watch list, write and watch, each once a round, so that a busy
// moment of the machine is in one sample of each. With an error the report holds the rounds before it.
func All(ctx context.Context, opts AllOptions) (results.AllReport, error) {
	opts = opts.withDefaults()
	report := results.AllReport{Machine: measure.ThisMachine(linked.Release()),
		Date: time.Now().UTC().Truncate(time.Second), Quick: opts.Quick}
	if ChildRequested() {
		return report, child.ErrRequested
	}
	if err := opts.validate(); err != nil {
		return report, fmt.Errorf("bench all: %w", err)
	}
	for number := range opts.Rounds {
		begun := time.Now()
		r := &allRound{opts: opts, took: map[string][]time.Duration{}}
		if err := r.run(ctx); err != nil {
			return report, fmt.Errorf("bench all: round %d: %w", number+1, err)
		}
		report.Add(r.samples())
		fmt.Fprintf(opts.Progress, "round %d of %d: %s\n", number+1, opts.Rounds, measure.Round(time.Since(begun)))
	}
	return report, nil
}

// allRound measures everything once: some of it many times, in a row or spread over the round.
type allRound struct {
	opts AllOptions
	took map[string][]time.Duration // by the name of the measure
}

func (r *allRound) run(ctx context.Context) error {
	parts := map[string]func(context.Context) error{"startup": r.startup, "requests": r.requests, "watch": r.watch}
	for _, part := range r.opts.Only {
		if err := r.calibrate(); err != nil {
			return err
		}
		if err := parts[part](ctx); err != nil {
			return err
		}
	}
	return nil
}

// samples returns the round's sample of each measure, in seconds. It is the lower quartile, because
// whatever else the machine does can only add to the time.
func (r *allRound) samples() map[string]float64 {
	samples := map[string]float64{}
	for name, took := range r.took {
		samples[name] = slices.Sorted(slices.Values(took))[len(took)/4].Seconds()
	}
	return samples
}

// timed measures how long f takes, a number of times.
func (r *allRound) timed(name string, times int, f func() error) error {
	for range times {
		begun := time.Now()
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for until := r.longer(name, time.Since(begun)); time.Since(begun) < until; {
			// It waits busily, which is more exact than a sleep.
		}
		r.add(name, time.Since(begun))
	}
	return nil
}

func (r *allRound) add(name string, took time.Duration) { r.took[name] = append(r.took[name], took) }

// longer returns a time with the injected slowdown. The time of the calibration stays, because it is
// to show that the machine itself is not slower.
func (r *allRound) longer(name string, took time.Duration) time.Duration {
	if name == results.MeasureCalibration {
		return took
	}
	return time.Duration((1 + r.opts.InjectedSlowdown) * float64(took))
}

// startup boots in processes of their own, as there is a first boot in each.
func (r *allRound) startup(ctx context.Context) error {
	for range 2 {
		answer, err := startup.Run(ctx, startup.Request{Store: measure.StoreMemory, Boots: 3})
		if err != nil {
			return err
		}
		r.add(results.MeasureFirstBoot, r.longer(results.MeasureFirstBoot, answer.Starts[0]))
		for _, start := range answer.Starts[1:] {
			r.add(results.MeasureBoot, r.longer(results.MeasureBoot, start))
		}
		for _, stop := range answer.Stops {
			r.add(results.MeasureStop, r.longer(results.MeasureStop, stop))
		}
	}
	return nil
}

// watch fans out events in the process and over TLS. Their rate leaves the machine some time, but
// little: at a low one, what it takes to wake a processor is much of what is measured. The process is
// a new one each round, so that the spread of the rounds holds how processes differ.
func (r *allRound) watch(ctx context.Context) error {
	opts := WatchOptions{Shape: load.Shape{Watchers: 100}, Pace: load.Pace{Rate: 200, Duration: 4 * time.Second}}
	if r.opts.Quick {
		opts.Duration = 1500 * time.Millisecond
	}
	var report results.WatchReport
	err := child.Converse(ctx, childWatch, opts, io.Discard, func(line []byte, _ io.Writer) error {
		return json.Unmarshal(line, &report)
	})
	for _, load := range report.Loads {
		r.add(load.Transport+results.MeasureDelivery, load.Latency.P50)
		r.add(load.Transport+results.MeasureCPU, load.Server.CPUPerMillion)
	}
	return err
}
