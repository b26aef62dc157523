package search

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/tempdir"
)

// Options say what to measure. The zero value measures nothing.
type Options struct {
	// Kernels is a clone of GoBench (github.com/timmyyuan/gobench). Without one, the kernels are those in Go's
	// own source, which are the same ones, with calls of runtime.Gosched added.
	Kernels string
	// Strategies are those of package sim.
	Strategies []string
	// Runs is how many seeds a kernel is run under at most, and Firsts how many such rows of seeds there are.
	Runs, Firsts int
	// Fixed is how many runs each fixed kernel gets, and Repeats how often the first failure of each kernel is
	// repeated, both with the first of the strategies.
	Fixed, Repeats int
	// Progress gets a line for each row of a strategy, and for each fixed kernel.
	Progress io.Writer
}

// rowsApart is the distance between the first seeds of two rows.
const rowsApart = 1000

// Measure builds the kernels and runs them.
func Measure(ctx context.Context, options Options) (Report, error) {
	all, err := kernels(ctx, options.Kernels)
	if err != nil {
		return Report{}, err
	}
	report := newReport(options, all)
	if options.Fixed > 0 {
		fixed, err := fixedKernels(all)
		if err != nil {
			return Report{}, err
		}
		all = append(all, fixed...)
	}
	folder, err := tempdir.Make("search")
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = folder.Remove() }() // what is left is for the next one
	m := measurement{Options: options, report: &report}
	if m.binaries, err = buildAll(ctx, folder.Path(), all, options); err != nil {
		return Report{}, err
	}
	for _, strategy := range options.Strategies {
		for row := range options.Firsts {
			if err := m.row(ctx, strategy, row); err != nil {
				return Report{}, err
			}
		}
	}
	if err := m.repeat(ctx); err != nil {
		return Report{}, err
	}
	if err := m.fixed(ctx); err != nil {
		return Report{}, err
	}
	return report, nil
}

// measurement is one Measure.
type measurement struct {
	Options
	binaries binaries
	mu       sync.Mutex // guards the report
	report   *Report
}

// each calls f for each of some kernels, several at a time.
func (m *measurement) each(
	ctx context.Context, names []string, f func(ctx context.Context, name string) error,
) error {
	working, ctx := errgroup.WithContext(ctx)
	working.SetLimit(runtime.NumCPU())
	for _, name := range names {
		working.Go(func() error { return f(ctx, name) })
	}
	return working.Wait()
}

// row looks for each kernel's first failure in one row of seeds.
func (m *measurement) row(ctx context.Context, name string, row int) error {
	begun := time.Now()
	strategy := m.report.strategy(name)
	err := m.each(ctx, m.report.Kernels, func(ctx context.Context, kernel string) error {
		run, verdict, err := m.first(ctx, kernel, sim.Search{Strategy: name, Bubble: true}, firstSeed(row))
		m.mu.Lock()
		defer m.mu.Unlock()
		strategy.First[kernel] = append(strategy.First[kernel], run)
		if run > 0 {
			strategy.Told[verdict]++
		}
		return err
	})
	if err != nil {
		return err
	}
	found, sum, _ := strategy.row(row)
	return m.say("%s, seeds from %d on: %d of %d found, first failures sum to %d (%s)\n",
		name, firstSeed(row), found, len(m.report.Kernels), sum, time.Since(begun).Round(time.Second))
}

func firstSeed(row int) uint64 { return uint64(row*rowsApart + 1) }

// first runs a kernel under seeds until it fails. It returns which run that is, as Strategy.First has it, and its
// verdict.
func (m *measurement) first(
	ctx context.Context, name string, search sim.Search, seed uint64,
) (int, string, error) {
	for n := range m.Runs {
		verdict, _, err := m.binaries.kernel(name).run(ctx, search, seed+uint64(n))
		switch {
		case err != nil:
			return 0, "", err
		case verdict == endless:
			return Endless, verdict, nil
		case verdict != passed:
			return n + 1, verdict, nil
		}
	}
	return Missed, passed, nil
}

// repeat repeats the first failure of each kernel.
func (m *measurement) repeat(ctx context.Context) error {
	if m.Repeats == 0 {
		return nil
	}
	m.report.Repeated = map[string]int{}
	first := m.report.Strategies[0].First
	err := m.each(ctx, m.report.Kernels, func(ctx context.Context, name string) error {
		run := first[name][0]
		if run <= 0 {
			return nil
		}
		same, err := m.binaries.kernel(name).sameRuns(ctx, m.search(), firstSeed(0)+uint64(run-1), m.Repeats)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.report.Repeated[name] = same
		return err
	})
	if err != nil {
		return err
	}
	return m.say("%d failures, each repeated %d times\n", len(m.report.Repeated), m.Repeats)
}

// fixed runs the fixed kernels.
func (m *measurement) fixed(ctx context.Context) error {
	if m.Fixed == 0 {
		return nil
	}
	m.report.Alarms = map[string]int{}
	return m.each(ctx, fixedNames(), func(ctx context.Context, name string) error {
		alarms, err := m.alarms(ctx, name, m.search())
		if err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.report.Alarms[name] = alarms
		return m.say("%s, fixed: %d false alarms in %d runs\n", name, alarms, m.Fixed)
	})
}

// search is the first of the strategies.
func (m *measurement) search() sim.Search { return sim.Search{Strategy: m.Strategies[0], Bubble: true} }

func (m *measurement) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(m.Progress, format, args...); err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	return nil
}

// alarms runs a fixed kernel under seeds, and counts how often it fails.
func (m *measurement) alarms(ctx context.Context, name string, search sim.Search) (alarms int, err error) {
	for n := range m.Fixed {
		verdict, _, err := m.binaries.kernel(name+fixedSuffix).run(ctx, search, uint64(n+1))
		if err != nil {
			return 0, err
		}
		if verdict != passed {
			alarms++
		}
	}
	return alarms, nil
}

func fixedKernels(all []kernel) (fixed []kernel, err error) {
	for _, fix := range fixes {
		at := slices.IndexFunc(all, func(k kernel) bool { return k.name == fix.kernel })
		if at < 0 {
			return nil, fmt.Errorf("there is no kernel %s, of which there is a fix", fix.kernel)
		}
		k, err := all[at].fixed(fix)
		if err != nil {
			return nil, err
		}
		fixed = append(fixed, k)
	}
	return fixed, nil
}

func fixedNames() (names []string) {
	for _, fix := range fixes {
		names = append(names, fix.kernel)
	}
	return names
}
