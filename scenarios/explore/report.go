package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/script"
)

// String is the progress in a line.
func (p Progress) String() string {
	runs := fmt.Sprint(p.Runs)
	if p.Of > 0 {
		runs += fmt.Sprintf(" of %d", p.Of)
	}
	text := fmt.Sprintf("%s runs, %.0f a minute, %d interleavings (%d new), %s",
		runs, perMinute(p.Runs, p.Elapsed), p.Interleavings, p.New, count(p.Failures, "failure"))
	if p.Shrinking > 0 {
		text += fmt.Sprintf(", shrinking %d", p.Shrinking)
	}
	return text
}

func perMinute(n int, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return float64(n) / in.Minutes()
}

// Text is the report for people.
func (r Report) Text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s with faults of %s", r.Script, count(r.Runs, "run"), strings.Join(nearest.Texts(r.Classes), ", "))
	if r.Shard.Count > 1 {
		fmt.Fprintf(&text, ", shard %d of %d", r.Shard.Index, r.Shard.Count)
	}
	fmt.Fprintf(&text, "\n  %d accepted, %d failed, %d not decided by the checkers, %d skipped\n", r.Accepted, r.Failed, r.Unknown, r.Skipped)
	fmt.Fprintf(&text, "  %d interleavings seen, %d of them new, by %s\n", r.Interleavings, r.New, count(r.Kept, "case"))
	fmt.Fprintf(&text, "  %.0f runs a minute in %s, with %s; %s in all\n\n", perMinute(r.Runs, r.Exploring),
		r.Exploring.Round(time.Second/10), count(r.Workers, "worker"), r.Elapsed.Round(time.Second/10))
	r.Spent.write(&text)
	for _, found := range r.Failures {
		found.write(&text)
	}
	for _, found := range r.Unstable {
		fmt.Fprintf(&text, "\nunstable: %s\n  found in run %d, failed again in %d of %d\n", summary(found.Failure), found.Run, found.Repeated, found.Repeats)
	}
	return text.String()
}

// write says where the time went.
func (s Spent) write(to *strings.Builder) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	total := max(s.Total(), 1)
	for _, part := range []struct {
		name  string
		spent time.Duration
	}{{"boot", s.Boot}, {"script", s.Script}, {"shutdown", s.Shutdown}, {"checkers", s.Check}, {"process", s.Process}} {
		fmt.Fprintf(table, "  %s\t%s\t%.0f%%\t\n", part.name, part.spent.Round(time.Second/10), 100*float64(part.spent)/float64(total))
	}
	_ = table.Flush() // a Builder never fails
}

func (f *Found) write(to *strings.Builder) {
	fmt.Fprintf(to, "\nfailure: %s\n", summary(f.Failure))
	fmt.Fprintf(to, "  found in run %d after %s, shrunk in %s (%s); met %d times\n", f.Run, f.After.Round(time.Second/10), f.Shrinking.Round(time.Second/10), count(f.ShrinkingRuns, "run"), f.Times)
	fmt.Fprintf(to, "  seed %d, %s on %s, %s; %d of %d other seeds fail as well\n", f.Seed, count(len(f.Rules), "rule"), count(f.Operations, "operation"), count(f.Commands, "command"), f.Others, f.OtherSeeds)
	for _, rule := range f.Rules {
		fmt.Fprintf(to, "    %s\n", rule)
	}
	if f.File != "" {
		fmt.Fprintf(to, "  snowglobe run %s\n", f.File)
	}
}

// Replayed says how often a script failed in which way.
type Replayed struct {
	Script string `json:"script"`
	Runs   int    `json:"runs"`
	// Failures are the ways, the most frequent first.
	Failures []ReplayedFailure `json:"failures"`
}

// ReplayedFailure is a way in which a script failed, and how often.
type ReplayedFailure struct {
	Failure *Failure `json:"failure"`
	Times   int      `json:"times"`
}

// Replay runs a script as it is so many times, so many at once.
func Replay(ctx context.Context, runner Runner, s script.Script, times, workers int) (Replayed, error) {
	replayed := Replayed{Script: s.Name, Runs: times, Failures: []ReplayedFailure{}}
	var mu sync.Mutex
	working, ctx := errgroup.WithContext(ctx)
	working.SetLimit(workers)
	for range times {
		working.Go(func() error {
			outcome, err := runner.Run(ctx, Task{Name: s.Name, Text: string(s.Text())})
			mu.Lock()
			defer mu.Unlock()
			replayed.add(outcome.Failure)
			return err
		})
	}
	if err := working.Wait(); err != nil {
		return replayed, err
	}
	slices.SortStableFunc(replayed.Failures, func(a, b ReplayedFailure) int { return b.Times - a.Times })
	return replayed, nil
}

func (r *Replayed) add(failure *Failure) {
	if failure == nil {
		return
	}
	i := slices.IndexFunc(r.Failures, func(f ReplayedFailure) bool { return f.Failure.Same(failure) })
	if i < 0 {
		r.Failures = append(r.Failures, ReplayedFailure{failure, 1})
		return
	}
	r.Failures[i].Times++
}

// String says it for people.
func (r Replayed) String() string {
	if len(r.Failures) == 0 {
		return fmt.Sprintf("%s: it did not fail in %s\n", r.Script, count(r.Runs, "run"))
	}
	var text strings.Builder
	for _, f := range r.Failures {
		fmt.Fprintf(&text, "%s: %d of %s failed: %s\n", r.Script, f.Times, count(r.Runs, "run"), summary(f.Failure))
	}
	return text.String()
}
