package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"snowglobe.test/scenarios"
)

// storyTeller tells people how scripts went.
type storyTeller struct {
	out     io.Writer
	color   bool
	verbose bool
	told    bool
}

func (t *storyTeller) begin(script scenarios.Script) {
	if t.told {
		fmt.Fprintln(t.out)
	}
	t.told = true
	fmt.Fprintf(t.out, "%s  %s\n\n", paint(t.color, bold, "━━ "+script.Name), paint(t.color, faint, script.File))
}

func (t *storyTeller) tell(result scenarios.Result) error {
	if len(result.Records) > 0 {
		if err := scenarios.WriteStory(t.out, result.Records, scenarios.TextOptions{Color: t.color, Verbose: t.verbose}); err != nil {
			return err
		}
		fmt.Fprintln(t.out)
	}
	if t.verbose {
		fmt.Fprintf(t.out, "  %s\n%s\n\n", paint(t.color, faint, "what the commands printed:"), indent(result.Log))
	}
	if t.verbose && result.Status == scenarios.Failed && result.ServerLog != "" {
		fmt.Fprintf(t.out, "  %s\n%s\n\n", paint(t.color, faint, "log of the last API server:"), indent(result.ServerLog))
	}
	fmt.Fprintf(t.out, "  %s %s\n", t.mark(result.Status), describe(result))
	return nil
}

// mark is the word for how a script ended.
func (t *storyTeller) mark(status scenarios.Status) string {
	switch status {
	case scenarios.Passed:
		return paint(t.color, green, "✓ passed ")
	case scenarios.Skipped:
		return paint(t.color, yellow, "- skipped")
	}
	return paint(t.color, red, "✗ failed ")
}

// describe says how long a script took, or why it did not end well.
func describe(result scenarios.Result) string {
	switch result.Status {
	case scenarios.Failed:
		return result.Err.Error()
	case scenarios.Skipped:
		return result.Reason
	}
	return fmt.Sprintf("%s of its own time, %s on the wall", round(result.Scripted), round(result.Wall))
}

func (t *storyTeller) summarize(results []scenarios.Result) error {
	if len(results) < 2 {
		return nil
	}
	width := 0
	counts := map[scenarios.Status]int{}
	var wall time.Duration
	for _, result := range results {
		width = max(width, len(result.Script.Name))
		counts[result.Status]++
		wall += result.Wall
	}
	fmt.Fprintf(t.out, "\n%s\n\n", paint(t.color, bold, "━━ summary"))
	for _, result := range results {
		first, _, _ := strings.Cut(describe(result), "\n")
		fmt.Fprintf(t.out, "  %s  %-*s  %s\n", t.mark(result.Status), width, result.Script.Name, first)
	}
	var parts []string
	for _, status := range []scenarios.Status{scenarios.Passed, scenarios.Failed, scenarios.Skipped} {
		if counts[status] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	fmt.Fprintf(t.out, "\n  %s in %s\n", strings.Join(parts, ", "), round(wall))
	_, err := fmt.Fprintln(t.out, "  "+paint(t.color, faint, "run -v shows more of each story, and run --events FILE keeps every event"))
	return err
}

// round makes a duration one for people.
func round(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}

// indent moves text away from the margin.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}
