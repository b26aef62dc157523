package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/story"
)

// lineReporter reports to people who run the whole library: a line for each story as it
// ends, and all of one that does not pass.
type lineReporter struct {
	stories storyReporter
	width   int // of the names
}

func newLineReporter(out io.Writer, scripts []script.Script) *lineReporter {
	r := &lineReporter{stories: storyReporter{out: out, color: wantsColor(out)}}
	for _, one := range scripts {
		r.width = max(r.width, len(one.Name))
	}
	return r
}

func (r *lineReporter) begin(script.Script) {}

func (r *lineReporter) script(result scenarios.Result) error {
	out, color := r.stories.out, r.stories.color
	if result.Status == scenarios.Failed || result.Status == scenarios.NotRun {
		r.stories.begin(result.Script)
		err := r.stories.script(result)
		fmt.Fprintln(out)
		return err
	}
	line := fmt.Sprintf("%s  %-*s  %8s", r.stories.mark(result.Status), r.width, result.Script.Name, round(result.Scripted))
	about := firstSentence(result.Script.Title())
	if result.Status == scenarios.Skipped {
		about = result.Reason
	}
	const marks = len("✓ passed    ") // what paint adds takes no room
	_, err := fmt.Fprintf(out, "%s  %s\n", line, story.Paint(color, faint, cut(about, columns(out)-r.width-marks-len("  12345678"))))
	return err
}

// firstSentence is how a text begins.
func firstSentence(text string) string {
	if end := strings.Index(text, ". "); end >= 0 {
		return text[:end+1]
	}
	return text
}

// cut shortens a text to a width; any is wide enough if there is no terminal.
func cut(text string, width int) string {
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

func (r *lineReporter) summarize(results []scenarios.Result, wall time.Duration) error {
	out, color := r.stories.out, r.stories.color
	fmt.Fprintf(out, "\n%s in %s\n", story.Paint(color, bold, counted(results)), round(wall))
	_, err := fmt.Fprintln(out, story.Paint(color, faint, "run NAME tells a story, and run -v tells all; the times are of the scripts' own clocks"))
	return err
}
