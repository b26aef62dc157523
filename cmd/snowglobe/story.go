package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"snowglobe.test/scenarios"
)

// storyReporter reports to people.
type storyReporter struct {
	out     io.Writer
	color   bool
	verbose bool
	started bool
}

func (r *storyReporter) begin(script scenarios.Script) {
	if r.started {
		fmt.Fprintln(r.out)
	}
	r.started = true
	fmt.Fprintf(r.out, "%s  %s\n\n", paint(r.color, bold, "━━ "+script.Name), paint(r.color, faint, script.File))
}

func (r *storyReporter) script(result scenarios.Result) error {
	if len(result.Records) > 0 {
		if err := scenarios.WriteStory(r.out, result.Records, scenarios.TextOptions{Color: r.color, Verbose: r.verbose, Columns: columns(r.out)}); err != nil {
			return err
		}
		fmt.Fprintln(r.out)
	}
	if r.verbose {
		fmt.Fprintf(r.out, "  %s\n%s\n\n", paint(r.color, faint, "what the commands printed:"), indent(result.Log))
	}
	if r.verbose && result.Status == scenarios.Failed && result.ServerLog != "" {
		fmt.Fprintf(r.out, "  %s\n%s\n\n", paint(r.color, faint, "log of the last API server:"), indent(result.ServerLog))
	}
	fmt.Fprintf(r.out, "  %s %s\n", r.mark(result.Status), describe(result))
	return nil
}

// mark is how the status of a script is shown.
func (r *storyReporter) mark(status scenarios.Status) string {
	switch status {
	case scenarios.Passed:
		return paint(r.color, green, "✓ passed ")
	case scenarios.Skipped:
		return paint(r.color, yellow, "- skipped")
	}
	return paint(r.color, red, "✗ failed ")
}

// describe says how long a script took, or why it did not pass.
func describe(result scenarios.Result) string {
	switch result.Status {
	case scenarios.Failed:
		return result.Err.Error()
	case scenarios.Skipped:
		return result.Reason
	}
	return fmt.Sprintf("%s of its own time, %s of wall time", round(result.Scripted), round(result.Wall))
}

func (r *storyReporter) summarize(results []scenarios.Result, wall time.Duration) error {
	if len(results) < 2 {
		return nil
	}
	width := 0
	counts := map[scenarios.Status]int{}
	for _, result := range results {
		width = max(width, len(result.Script.Name))
		counts[result.Status]++
	}
	fmt.Fprintf(r.out, "\n%s\n\n", paint(r.color, bold, "━━ summary"))
	for _, result := range results {
		first, _, _ := strings.Cut(describe(result), "\n")
		fmt.Fprintf(r.out, "  %s  %-*s  %s\n", r.mark(result.Status), width, result.Script.Name, first)
	}
	var parts []string
	for _, status := range []scenarios.Status{scenarios.Passed, scenarios.Failed, scenarios.Skipped} {
		if counts[status] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	fmt.Fprintf(r.out, "\n  %s in %s\n", strings.Join(parts, ", "), round(wall))
	_, err := fmt.Fprintln(r.out, "  "+paint(r.color, faint, "run -v shows more of each story; run --events FILE saves every event"))
	return err
}

func round(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
