package trial

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The states of lines about cases. A case that is skipped has none of them.
const (
	Passed = "passed"
	Failed = "failed"
	NotRun = "not run"
)

// A Process runs cases on a control plane of its own, with the mutants on whose switches are
// given. It ends early when tell returns false. The error says why it ended before all
// was done, and wraps the cause of a cancelled context.
type Process func(ctx context.Context, mutants []int, order Order, tell func(Line) bool) error

// Baseline is which mutants are reached, and when, while none is on.
type Baseline struct {
	// Boot are the mutants that are reached before the control plane is ready.
	Boot []int `json:"boot"`
	// Cases are the lines about cases that pass.
	Cases []Line `json:"cases"`
	// Unfit are the cases that do not pass without a mutant, and so judge none.
	Unfit []string `json:"unfit"`
}

// Measure runs all cases without a mutant.
func Measure(ctx context.Context, process Process, order Order, progress func(Line)) (*Baseline, error) {
	b := &Baseline{}
	err := process(ctx, nil, order, func(line Line) bool {
		progress(line)
		switch {
		case line.Case == "":
			b.Boot = line.Reached
		case line.State == Passed:
			line.Message = ""
			b.Cases = append(b.Cases, line)
		default:
			b.Unfit = append(b.Unfit, line.Case+" "+line.State)
		}
		return true
	})
	if err != nil && len(b.Cases) == 0 {
		return nil, fmt.Errorf("run the cases without a mutant: %w", err)
	}
	return b, nil
}

// Reached are the mutants that anything reaches.
func (b *Baseline) Reached() map[int]bool {
	reached := map[int]bool{}
	for _, n := range b.Boot {
		reached[n] = true
	}
	for _, line := range b.Cases {
		for _, n := range line.Reached {
			reached[n] = true
		}
	}
	return reached
}

// Candidates are the cases that may notice a mutant: those that reach it, or, if it is reached
// while the control plane starts, which changes the control plane of every case, all. Those
// of its own system are first, among them those that reach it, and among these the cheap ones.
func (b *Baseline) Candidates(mutant int, system string) []string {
	type candidate struct {
		id   string
		rank int
		took time.Duration
	}
	boot := has(b.Boot, mutant)
	var all []candidate
	for _, line := range b.Cases {
		reaches, rank := has(line.Reached, mutant), 0
		if !strings.HasPrefix(line.Case, system+"/") {
			rank += 2
		}
		if !reaches {
			rank++
		}
		if reaches || boot {
			all = append(all, candidate{line.Case, rank, line.Took})
		}
	}
	slices.SortStableFunc(all, func(a, c candidate) int {
		return cmp.Or(cmp.Compare(a.rank, c.rank), cmp.Compare(a.took, c.took))
	})
	var ids []string
	for _, c := range all {
		ids = append(ids, c.id)
	}
	return ids
}

// has reports whether a sorted list has a number.
func has(sorted []int, n int) bool {
	_, found := slices.BinarySearch(sorted, n)
	return found
}
