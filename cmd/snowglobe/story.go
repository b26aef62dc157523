package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/story"
)

// storyReporter reports to people.
type storyReporter struct {
	out     io.Writer
	color   bool
	verbose bool
	started bool
}

func (r *storyReporter) begin(next script.Script) {
	if r.started {
		fmt.Fprintln(r.out)
	}
	r.started = true
	fmt.Fprintf(r.out, "%s  %s\n\n", story.Paint(r.color, bold, "━━ "+next.Name), story.Paint(r.color, faint, next.File))
}

func (r *storyReporter) script(result scenarios.Result) error {
	if len(result.Records) > 0 {
		if err := story.Write(r.out, result.Records, story.TextOptions{Color: r.color, Verbose: r.verbose, Columns: columns(r.out)}); err != nil {
			return err
		}
		fmt.Fprintln(r.out)
	}
	if r.verbose {
		fmt.Fprintf(r.out, "  %s\n%s\n\n", story.Paint(r.color, faint, "what the commands printed:"), indent(result.Log))
	}
	if r.verbose && result.Status == scenarios.Failed && result.ServerLog != "" {
		fmt.Fprintf(r.out, "  %s\n%s\n\n", story.Paint(r.color, faint, "log of the last API server:"), indent(result.ServerLog))
	}
	fmt.Fprintf(r.out, "  %s %s\n", r.mark(result.Status), describe(result))
	return nil
}

// mark is how the status of a script is shown.
func (r *storyReporter) mark(status scenarios.Status) string {
	switch status {
	case scenarios.Passed:
		return story.Paint(r.color, green, "✓ passed ")
	case scenarios.Skipped:
		return story.Paint(r.color, yellow, "- skipped")
	case scenarios.NotRun:
		return story.Paint(r.color, red, "✗ not run")
	}
	return story.Paint(r.color, red, "✗ failed ")
}

// describe says how long a script took, or why it did not pass.
func describe(result scenarios.Result) string {
	switch result.Status {
	case scenarios.Failed, scenarios.NotRun:
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
	for _, result := range results {
		width = max(width, len(result.Script.Name))
	}
	fmt.Fprintf(r.out, "\n%s\n\n", story.Paint(r.color, bold, "━━ summary"))
	for _, result := range results {
		first, _, _ := strings.Cut(describe(result), "\n")
		fmt.Fprintf(r.out, "  %s  %-*s  %s\n", r.mark(result.Status), width, result.Script.Name, first)
	}
	fmt.Fprintf(r.out, "\n  %s in %s\n", counted(results), round(wall))
	_, err := fmt.Fprintln(r.out, "  "+story.Paint(r.color, faint, "run -v shows more of each story; run --events FILE saves every event"))
	return err
}

// counted says how many scripts ended in each way.
func counted(results []scenarios.Result) string {
	counts := map[scenarios.Status]int{}
	for _, result := range results {
		counts[result.Status]++
	}
	var parts []string
	for _, status := range []scenarios.Status{scenarios.Passed, scenarios.Failed, scenarios.Skipped, scenarios.NotRun} {
		if counts[status] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	return strings.Join(parts, ", ")
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
