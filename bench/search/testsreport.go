package search

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"snowglobe.test/envtest/sim"
)

// Tests is what a search has made of tests that were not written for it.
type Tests struct {
	Go       string `json:"go"`
	Strategy string `json:"strategy"`
	// Seeds is under how many each test has run.
	Seeds    int       `json:"seeds"`
	Packages []Package `json:"packages"`
}

// Package is what came of the tests of one.
type Package struct {
	Path   string `json:"path"`
	Module string `json:"module"` // with its version
	// Functions is how many tests there are.
	Functions int `json:"functions"`
	// NotRunnable are those that can't run in a bubble, by reason.
	NotRunnable map[string][]string `json:"notRunnable,omitempty"`
	// Own are those that make a bubble themselves.
	Own []string `json:"own,omitempty"`
	// Leaks are those that leave goroutines behind which wait for ever.
	Leaks []string `json:"leaks,omitempty"`
	// Failing are those that fail under some seeds, with how they ended then: "deadlock", "endless", after which a test
	// is given up, or "broken" for all else.
	Failing map[string]map[uint64]string `json:"failing,omitempty"`
}

// InBubble is how many of the tests run in a bubble.
func (p Package) InBubble() int {
	n := p.Functions
	for _, names := range p.NotRunnable {
		n -= len(names)
	}
	return n
}

// Total is the sum of all packages.
func (t Tests) Total() Package {
	all := Package{NotRunnable: map[string][]string{}, Failing: map[string]map[uint64]string{}}
	for _, p := range t.Packages {
		all.Functions += p.Functions
		all.Own, all.Leaks = append(all.Own, p.Own...), append(all.Leaks, p.Leaks...)
		for reason, names := range p.NotRunnable {
			all.NotRunnable[reason] = append(all.NotRunnable[reason], names...)
		}
		for name, told := range p.Failing {
			all.Failing[p.Path+"."+name] = told
		}
	}
	return all
}

// writeText writes a table with a line for each package, and then what failed.
func (t Tests) writeText(w *bytes.Buffer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "package\ttests\tin a bubble\tleave goroutines behind\tfail by some seed")
	for _, p := range t.Packages {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", p.Path, p.Functions, p.InBubble(), len(p.Leaks), len(p.Failing))
	}
	table.Flush()
	for _, p := range t.Packages {
		for _, name := range slices.Sorted(maps.Keys(p.Failing)) {
			told := p.Failing[name]
			first := slices.Min(slices.Collect(maps.Keys(told)))
			put := !slices.Contains(p.Own, name)
			search := sim.Search{Strategy: t.Strategy, Bubble: put, Leaks: put}
			fmt.Fprintf(w, "\n%s fails under %d of %d seeds: %s\n",
				name, len(told), t.Seeds, sim.Repeat(first, search, sim.OnlyTest(name), p.Path))
		}
	}
}
