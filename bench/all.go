package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/startup"
	"snowglobe.test/envtest"
)

// AllOptions say how to measure all that users of a control plane feel.
type AllOptions struct {
	// Rounds is how often everything is measured. Zero means 20, or 8 if Quick.
	Rounds int
	// Quick has loads be shorter, for an answer within three minutes.
	Quick bool
	// Only is which of Parts to measure; empty means all.
	Only []string
	// Plant makes each boot, reset, write and list last longer by so much of its time, such as 0.1:
	// to see that a comparison notices.
	Plant float64
	// Progress gets a line for each round; it may be nil.
	Progress io.Writer
}

const maxRounds = 1000

// Parts are what All measures. The yardstick is measured with each.
var Parts = []string{"startup", "requests", "watch"}

func (o AllOptions) withDefaults() AllOptions {
	if o.Quick {
		defaultTo(&o.Rounds, 8)
	}
	if o.Only == nil {
		o.Only = Parts
	}
	defaultTo(&o.Rounds, 20)
	defaultTo(&o.Progress, io.Discard)
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
	case o.Plant < 0 || o.Plant > 10:
		return fmt.Errorf("a plant of %g: give a share of the time from 0 to 10, like 0.1", o.Plant)
	}
	return nil
}

// All measures startup, reset, list, watch list, write and watch, each once a round, so that a busy
// moment of the machine is in one sample of each. With an error the report holds the rounds before it.
func All(ctx context.Context, opts AllOptions) (AllReport, error) {
	opts = opts.withDefaults()
	report := AllReport{Machine: measure.ThisMachine(envtest.Release()), Date: time.Now().UTC().Truncate(time.Second), Quick: opts.Quick}
	if ChildRequested() {
		return report, child.ErrRequested
	}
	if err := opts.validate(); err != nil {
		return report, fmt.Errorf("bench all: %w", err)
	}
	for number := range opts.Rounds {
		begun := time.Now()
		r := &allRound{opts: opts, found: map[string]float64{}}
		if err := r.run(ctx); err != nil {
			return report, fmt.Errorf("bench all: round %d: %w", number+1, err)
		}
		report.add(r.found)
		fmt.Fprintf(opts.Progress, "round %d of %d: %s\n", number+1, opts.Rounds, measure.Round(time.Since(begun)))
	}
	return report, nil
}

// allRound measures everything once.
type allRound struct {
	opts  AllOptions
	found map[string]float64 // by the name of the measure
}

func (r *allRound) run(ctx context.Context) error {
	parts := map[string]func(context.Context) error{"startup": r.startup, "requests": r.requests, "watch": r.watch}
	err := r.yardstick(ctx)
	for _, part := range r.opts.Only {
		if err == nil {
			err = parts[part](ctx)
		}
	}
	return err
}

// timed measures how long f takes, a number of times, and takes the median.
func (r *allRound) timed(name string, times int, f func() error) error {
	var took []time.Duration
	for range times {
		begun := time.Now()
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for until := time.Duration((1 + r.opts.Plant) * float64(time.Since(begun))); time.Since(begun) < until; {
			// The clock is more exact than a sleep.
		}
		took = append(took, time.Since(begun))
	}
	r.found[name] = measure.NewTiming(took).Median.Seconds()
	return nil
}

// startup boots in a process of its own.
func (r *allRound) startup(ctx context.Context) error {
	answer, err := startup.Run(ctx, startup.Request{Store: startup.StoreMemory, Boots: 4})
	if err != nil {
		return err
	}
	longer := 1 + r.opts.Plant
	r.found[measureFirstBoot] = answer.Starts[0].Seconds() * longer
	r.found[measureBoot] = measure.NewTiming(answer.Starts[1:]).Median.Seconds() * longer
	r.found[measureStop] = measure.NewTiming(answer.Stops).Median.Seconds() * longer
	return nil
}

// watch fans out events of a rate that leaves the machine some time, in this process and over TLS.
func (r *allRound) watch(ctx context.Context) error {
	opts := WatchOptions{Watchers: 100, Rate: 50, Duration: 4 * time.Second}
	if r.opts.Quick {
		opts.Duration = 1500 * time.Millisecond
	}
	report, err := Watch(ctx, opts)
	for _, load := range report.Loads {
		r.found[load.Transport+measureDelivery] = load.Latency.P50.Seconds()
		r.found[load.Transport+measureCPU] = load.Server.CPUPerMillion.Seconds()
	}
	return err
}
