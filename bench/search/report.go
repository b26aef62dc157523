package search

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"text/tabwriter"
)

// Report is what Measure has found.
type Report struct {
	Go string `json:"go"`
	// Source says where the kernels are from: GoBench, or Go's own source.
	Source  string   `json:"source"`
	Kernels []string `json:"kernels"`
	// Runs is how many seeds each kernel was run under at most, in each row.
	Runs       int        `json:"runs"`
	Strategies []Strategy `json:"strategies"`
	// Repeated is how many of Repeats repetitions of a kernel's first failure did and said the same.
	Repeats  int            `json:"repeats,omitempty"`
	Repeated map[string]int `json:"repeated,omitempty"`
	// Alarms is how many of Fixed runs of a fixed kernel failed.
	Fixed  int            `json:"fixed,omitempty"`
	Alarms map[string]int `json:"alarms,omitempty"`
	// Tests are those of other modules, if MeasureTests has run them.
	Tests *Tests `json:"tests,omitempty"`
}

// Strategy is what one strategy has found.
type Strategy struct {
	Name string `json:"name"`
	// First has, for each kernel, the number of the run that failed first, from 1 on, in each row of seeds. It is
	// Missed if none failed, and Endless if one did not end: the kernel was given up then.
	First map[string][]int `json:"first"`
	// Told counts these failures by what was said of them: "deadlock", or "broken" for a panic or a failed test.
	Told map[string]int `json:"told"`
}

// What First has of a kernel that was not found.
const (
	Missed  = 0
	Endless = -1
)

func newReport(options Options, all []kernel) Report {
	source := "Go's own source"
	if options.Kernels != "" {
		source = "GoBench"
	}
	return Report{
		Go: runtime.Version(), Source: source, Kernels: names(all), Runs: options.Runs,
		Repeats: options.Repeats, Fixed: options.Fixed,
	}
}

// strategy returns what one has found, to add to it.
func (r *Report) strategy(name string) *Strategy {
	at := slices.IndexFunc(r.Strategies, func(s Strategy) bool { return s.Name == name })
	if at < 0 {
		at = len(r.Strategies)
		r.Strategies = append(r.Strategies, Strategy{name, map[string][]int{}, map[string]int{}})
	}
	return &r.Strategies[at]
}

// row says how many kernels a row has found, and what the numbers of their runs sum to; worst is the largest.
func (s *Strategy) row(n int) (found, sum, worst int) {
	for _, first := range s.First {
		if run := first[n]; run > 0 {
			found++
			sum += run
			worst = max(worst, run)
		}
	}
	return found, sum, worst
}

// rows is how many there are.
func (s *Strategy) rows() int {
	for _, first := range s.First {
		return len(first)
	}
	return 0
}

// summary is one line about a strategy, over its rows.
type summary struct {
	Found, Sum, Worst spread
	Deadlocks         int            // how many of the failures are told as a deadlock, in percent
	Median            int            // run of the first failure, over all kernels and rows
	Missed, Endless   map[string]int // in how many rows, by kernel
}

// spread are the smallest, the middle and the largest of some numbers.
type spread struct{ least, median, most int }

func spreadOf(numbers []int) spread {
	if len(numbers) == 0 {
		return spread{}
	}
	slices.Sort(numbers)
	return spread{numbers[0], numbers[len(numbers)/2], numbers[len(numbers)-1]}
}

func (s spread) String() string {
	if s.least == s.most {
		return fmt.Sprint(s.median)
	}
	return fmt.Sprintf("%d (%d to %d)", s.median, s.least, s.most)
}

// Summary is what the page and the table say of a strategy.
func (s *Strategy) Summary() summary {
	all := summary{Missed: map[string]int{}, Endless: map[string]int{}}
	var found, sum, worst, runs []int
	for n := range s.rows() {
		f, total, w := s.row(n)
		found, sum, worst = append(found, f), append(sum, total), append(worst, w)
	}
	for name, first := range s.First {
		for _, run := range first {
			switch run {
			case Missed:
				all.Missed[name]++
			case Endless:
				all.Endless[name]++
			default:
				runs = append(runs, run)
			}
		}
	}
	all.Found, all.Sum, all.Worst = spreadOf(found), spreadOf(sum), spreadOf(worst)
	all.Median = spreadOf(runs).median
	all.Deadlocks = 100 * s.Told[deadlock] / max(1, len(runs))
	return all
}

// WriteText writes a table with a line for each strategy or, if there are tests, for each package.
func (r Report) WriteText(w *bytes.Buffer) {
	if r.Tests != nil {
		r.Tests.writeText(w)
		return
	}
	fmt.Fprintf(w, "%d kernels of %s, %s; under at most %d seeds\n\n", len(r.Kernels), r.Source, r.Go, r.Runs)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "strategy\trows\tfound\tsum of first failures\tmedian\tworst")
	for _, s := range r.Strategies {
		all := s.Summary()
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t%s\n", s.Name, s.rows(), all.Found, all.Sum, all.Median, all.Worst)
	}
	table.Flush()
}

// WriteBenchmark writes a line for each strategy: its rows, and the sum of first failures. With tests, it has how many
// ran in a bubble, and how many failed by some seed.
func (r Report) WriteBenchmark(w *bytes.Buffer) {
	if r.Tests != nil {
		all := r.Tests.Total()
		fmt.Fprintf(w, "BenchmarkTests/%s\t%d\t%d failing\n", r.Tests.Strategy, all.InBubble(), len(all.Failing))
		return
	}
	for _, s := range r.Strategies {
		fmt.Fprintf(w, "BenchmarkSearch/%s\t%d\t%d runs\n", s.Name, s.rows(), s.Summary().Sum.median)
	}
}
