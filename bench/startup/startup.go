// Package startup measures how long control planes take to start and to stop, compared with
// controller-runtime's envtest on real binaries.
package startup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/measure"
	"snowglobe.test/envtest/linked"
)

// Options say how to measure startup.
type Options struct {
	// Runs is how many processes to measure, one after another; zero means 5.
	Runs int
	// Following is how many further boots each process measures; zero means 3.
	Following int
	// Store is measure.StoreMemory or measure.StoreEmbedded; empty means measure.StoreMemory.
	Store string
	// Against, if set, is a folder with kube-apiserver and etcd: every run is
	// followed by one of controller-runtime's envtest on them, to compare.
	Against string
	// Profile is a folder for CPU profiles of the boots of one more process,
	// which is not part of the report: boot-1.pprof is the first boot.
	Profile string
	// Progress gets a line when a run ends; it may be nil.
	Progress io.Writer
}

// envtestStarts is how often a run boots controller-runtime's envtest. Each
// boot starts new processes, so the first is like any other.
const envtestStarts = 2

// maxBoots bounds the runs and the boots in a run.
const maxBoots = 1000

func (o Options) withDefaults() Options {
	o.Runs = cmp.Or(o.Runs, 5)
	o.Following = cmp.Or(o.Following, 3)
	o.Store = cmp.Or(o.Store, measure.StoreMemory)
	o.Progress = cmp.Or(o.Progress, io.Discard)
	return o
}

func (o Options) validate() error {
	if o.Runs < 0 || o.Runs > maxBoots {
		return fmt.Errorf("%d runs: give a number from 1 to %d", o.Runs, maxBoots)
	}
	if o.Following < 0 || o.Following > maxBoots {
		return fmt.Errorf("%d following boots: give a number from 1 to %d", o.Following, maxBoots)
	}
	return measure.CheckStore(o.Store)
}

// Measure measures how long control planes take to start and to stop. A start lasts
// from the call until /readyz answers 200 and the default namespace exists; a stop
// lasts until everything has ended.
//
// The first boot of a process does work that later boots share, so each run is a
// process of its own: Measure executes its own program again, which must then call
// bench.Child (see bench.ChildRequested).
func Measure(ctx context.Context, opts Options) (Report, error) {
	report, err := measured(ctx, opts.withDefaults())
	if err != nil {
		return Report{}, fmt.Errorf("bench startup: %w", err)
	}
	return report, nil
}

func measured(ctx context.Context, opts Options) (Report, error) {
	if err := opts.validate(); err != nil {
		return Report{}, err
	}
	if child.Requested() != "" {
		return Report{}, child.ErrRequested
	}
	report := Report{Machine: measure.ThisMachine(linked.Release()), Store: opts.Store, Runs: opts.Runs}
	if opts.Against != "" {
		binaries, err := measure.FindBinaries(ctx, opts.Against)
		if err != nil {
			return Report{}, fmt.Errorf("compare with the binaries in %s: %w", opts.Against, err)
		}
		report.Against = &Comparison{Binaries: binaries}
	}
	if err := alternate(ctx, opts, &report); err != nil {
		return Report{}, err
	}
	if opts.Profile != "" {
		_, err := Run(ctx, Request{Store: opts.Store, Boots: 1 + opts.Following, Profile: opts.Profile})
		if err != nil {
			return Report{}, fmt.Errorf("profile: %w", err)
		}
		fmt.Fprintf(opts.Progress, "profiles of %d boots are in %s\n", 1+opts.Following, opts.Profile)
	}
	return report, nil
}

// alternate runs ours and envtest in turn, so that the machine's other work affects both.
func alternate(ctx context.Context, opts Options, report *Report) error {
	var load, first, following, stop, theirStart, theirStop []time.Duration
	for run := range opts.Runs {
		ours, err := Run(ctx, Request{Store: opts.Store, Boots: 1 + opts.Following})
		if err != nil {
			return fmt.Errorf("run %d: %w", run+1, err)
		}
		load = append(load, ours.Load)
		first = append(first, ours.Starts[0])
		following = append(following, ours.Starts[1:]...)
		stop = append(stop, ours.Stops...)
		fmt.Fprintf(opts.Progress, "run %d of %d: first boot %s, following %s, stops %s\n", run+1, opts.Runs,
			measure.Round(ours.Starts[0]), list(ours.Starts[1:]), list(ours.Stops))
		if report.Against == nil {
			continue
		}
		theirs, err := Run(ctx, Request{Binaries: report.Against.Folder, Boots: envtestStarts})
		if err != nil {
			return fmt.Errorf("run %d: controller-runtime's envtest: %w", run+1, err)
		}
		theirStart = append(theirStart, theirs.Starts...)
		theirStop = append(theirStop, theirs.Stops...)
		fmt.Fprintf(opts.Progress, "run %d of %d: envtest starts %s, stops %s\n", run+1, opts.Runs, list(theirs.Starts),
			list(theirs.Stops))
	}
	report.Load, report.FirstBoot, report.FollowingBoot, report.Stop = measure.NewTiming(load),
		measure.NewTiming(first), measure.NewTiming(following), measure.NewTiming(stop)
	if report.Against != nil {
		report.Against.Compare(report, measure.NewTiming(theirStart), measure.NewTiming(theirStop))
	}
	return nil
}
